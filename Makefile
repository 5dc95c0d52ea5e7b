# make host-max   measure 20 thin volumes on this machine, from nothing
# make check      lint, types, unit tests (for every commit)
# make test       everything, on real fio and real devices (needs root)
# make guests     all tests on guests with a kernel of their own, also those that take long when these are emulated
# make lab-up     three guests with a kernel of their own, a server of NFS and two clients; make lab-down ends them
PYTHON ?= python3
BIN := .venv/bin
# the tools of the venv first: ansible-lint, ansible-test and ansible-runner look for their helpers on PATH
export PATH := $(CURDIR)/$(BIN):$(PATH)
export ANSIBLE_CONFIG := $(CURDIR)/ansible.cfg
# progress as it comes, also into a log file
export PYTHONUNBUFFERED := 1
ARGS ?=

.PHONY: host-max check lint unit test integration molecule sanity benchmark guests lab-up lab-down clean
.SILENT:

host-max: .venv/.ready
	ansible-playbook playbooks/host_max.yml $$(.ci/become) $(ARGS)

check: lint unit

lint: .venv/.ready-test
	ruff check .
	ruff format --check .
	mypy plugins/module_utils plugins/plugin_utils plugins/action plugins/callback src/hostmax
	yamllint --strict .

unit: .venv/.ready-test
	python -m pytest -q tests/unit

test: .venv/.ready-test lint
	.ci/packages
	.ci/with_guests .ci/all

guests: .venv/.ready-test
	.ci/packages
	HOSTMAX_THOROUGH=1 .ci/with_guests sh -c '.ci/molecule && python -m pytest tests/integration/test_nfs_*.py tests/integration/test_kernel_lab.py'

integration: .venv/.ready-test
	python -m pytest tests/integration

molecule: .venv/.ready-test
	.ci/molecule

sanity: .venv/.ready-test
	.ci/sanity

lab-up: .venv/.ready-test
	python -m tests.lab.kernel up

lab-down: .venv/.ready-test
	python -m tests.lab.kernel down

benchmark: .venv/.ready-test
	python benchmarks/overhead.py

.venv/.ready: pyproject.toml constraints.txt
	.ci/venv $(PYTHON) .
	touch $@

.venv/.ready-test: pyproject.toml constraints.txt
	.ci/venv $(PYTHON) '.[test]'
	touch .venv/.ready $@

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
