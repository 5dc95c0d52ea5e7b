"""The main job on real fio and real devices, against caps that the kernel imposes."""

from __future__ import annotations

import json
import pathlib

import jsonschema
import pytest
from ansible_collections.hostmax.storage.plugins.module_utils.sample_pack import unpack_sample

from .playbook import NEEDS_DEVICES, ROOT, at_cap, left_behind, play, results_of

pytestmark = NEEDS_DEVICES

CAP = {"iops": 3000, "bytes_per_s": 24_576_000}
SMALL = {
    "hostmax_thin_count": 4,
    "hostmax_thin_size": "50GB",
    "hostmax_thin_cap": CAP,
    "hostmax_volume_counts": [1, 2, 4],
    "hostmax_runtime_s": 4,
    "hostmax_ramp_s": 1,
}


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    """The host's state directory, for this module alone."""
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def capped(tmp_path_factory, state):
    """One run over capped volumes: what it printed, its exit code and its run directory."""
    results = tmp_path_factory.mktemp("results")
    settings = {
        **SMALL,
        "hostmax_results": str(results),
        "hostmax_workloads": ["4k-randread", "4k-randwrite", "256k-randread"],
        "hostmax_expect": [
            {"iops": 12_000, "name": "promised", "workload": "4k-randread", "tolerance": 0.02},
            {"iops": 14_000, "name": "wished for", "workload": "4k-randread", "tolerance": 0.02},
        ],
    }
    return play("host_max", settings, HOSTMAX_STATE=str(state)), results


@pytest.fixture(scope="module")
def found(capped):
    return results_of(capped[1])


def point(found, workload, volumes):
    return next(p for p in found["points"] if p["workload"]["name"] == workload and p["volumes"] == volumes)


@pytest.mark.parametrize("workload", ["4k-randread", "4k-randwrite"])
def test_four_volumes_capped_at_3000_iops_measure_12000(found, workload):
    measured = point(found, workload, 4)
    assert measured["counted"], measured["gates"]
    assert measured["total"]["iops"] == at_cap(12_000, SMALL["hostmax_runtime_s"])
    for volume in measured["per_volume"]["localhost"].values():
        assert volume["total"]["iops"] == at_cap(3000, SMALL["hostmax_runtime_s"])


def test_large_blocks_measure_the_bandwidth_cap(found):
    assert point(found, "256k-randread", 4)["total"]["bytes_per_s"] == pytest.approx(4 * 24_576_000, rel=0.03)


def test_the_ladder_is_linear_while_only_the_caps_bind(found):
    ladder = next(each for each in found["ladders"] if each["workload"] == "4k-randread")
    assert [rung["volumes"] for rung in ladder["rungs"]] == [1, 2, 4]
    for rung in ladder["rungs"]:
        assert rung["efficiency"] == at_cap(1.0, SMALL["hostmax_runtime_s"])
    assert ladder["knee_volumes"] is None
    assert ladder["maximum"]["volumes"] == 4


@pytest.mark.parametrize("workload", ["4k-randread", "4k-randwrite", "256k-randread"])
def test_the_limit_named_is_the_cap_of_the_volumes(found, workload):
    assert point(found, workload, 4)["limit"]["kind"] == "service_cap"


def test_a_promise_that_is_kept_passes_and_one_that_is_not_fails_with_exit_2_after_the_report(capped, found):
    done, results = capped
    assert {verdict["name"]: verdict["status"] for verdict in found["verdicts"]} == {
        "promised": "pass",
        "wished for": "fail",
    }
    assert done.returncode == 2, done.stdout
    assert (results / "latest" / "report.html").exists()
    assert "wished for: fail" in done.stdout


def test_what_the_kernel_saw_is_what_fio_reported(capped, found):
    lines = (capped[1] / "latest" / "samples.jsonl").read_text().splitlines()
    packed = next(s for s in map(json.loads, lines) if s["point"] == point(found, "4k-randread", 4)["id"])
    sample = unpack_sample(packed)
    for name, kernel in sample["kernel"].items():
        assert kernel["read_iops"] == pytest.approx(sample["volumes"][name]["read"]["iops"], rel=0.05)


def test_the_results_keep_the_contract(found):
    schema = json.loads((ROOT / "plugins/plugin_utils/schema/results-1.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(found)


def test_the_run_directory_holds_everything_the_contract_names(capped):
    run = (capped[1] / "latest").resolve()
    for name in ("plan.json", "samples.jsonl", "results.json", "results.csv", "junit.xml", "summary.md", "report.html"):
        assert (run / name).stat().st_size > 0
    assert (run / "hosts/localhost/journal.json").exists()
    assert len(list((run / "hosts/localhost").glob("*.json.gz"))) == 9


def test_nothing_is_left_on_the_host(capped, state):
    assert capped[0].returncode == 2
    assert left_behind(state) == []


def test_the_screen_shows_the_plan_first_then_each_point_then_the_table(capped):
    text = capped[0].stdout
    assert text.index("9 points on 1 host") < text.index("[1/9]") < text.index("[9/9]") < text.index("Host maximum:")


def test_reports_are_made_again_from_the_run_directory(capped):
    run = (capped[1] / "latest").resolve()
    before = (run / "results.json").read_text()
    (run / "report.html").unlink()
    again = play("report", {"hostmax_run": str(run), "hostmax_fail_on": ["never"]})
    assert again.returncode == 0, again.stdout
    assert (run / "report.html").exists()
    assert json.loads((run / "results.json").read_text())["points"] == json.loads(before)["points"]


def test_without_a_cap_the_clients_cpus_are_named_and_the_verdict_is_open(tmp_path, state):
    settings = {
        **SMALL,
        "hostmax_results": str(tmp_path),
        "hostmax_thin_cap": {"iops": 5_000_000},
        "hostmax_volume_counts": [4],
    }
    done = play("host_max", settings, HOSTMAX_STATE=str(state))
    assert done.returncode == 0, done.stdout
    found = results_of(tmp_path)
    assert found["ladders"][0]["limit"]["kind"] == "client_cpu"
    assert [verdict["status"] for verdict in found["verdicts"]] == ["inconclusive"]


def test_check_mode_shows_the_plan_and_changes_nothing(tmp_path, state):
    done = play("host_max", {**SMALL, "hostmax_results": str(tmp_path / "r")}, "--check", HOSTMAX_STATE=str(state))
    assert done.returncode == 0, done.stdout
    assert "3 points on 1 host" in done.stdout
    assert "changed=0" in done.stdout
    assert not (tmp_path / "r").exists()
    assert left_behind(state) == []


def test_named_raw_volumes_are_measured_like_thin_ones(tmp_path, state, request):
    from .device_bench import run

    image = tmp_path / "disk.img"
    with image.open("wb") as handle:
        handle.truncate(2**30)
    device = run("losetup", "-f", "--show", "--direct-io=on", str(image))
    request.addfinalizer(lambda: run("losetup", "-d", device))
    alias = pathlib.Path(tmp_path, "by-path-ip-10.0.0.1:3260-lun-1")
    alias.symlink_to(device)
    settings = {
        "hostmax_results": str(tmp_path / "results"),
        "hostmax_volumes": [{"path": str(alias), "size": "1GiB"}],
        "hostmax_workloads": ["4k-randread", "4k-randwrite"],
        "hostmax_runtime_s": 2,
        "hostmax_ramp_s": 0,
    }
    done = play("host_max", settings, HOSTMAX_STATE=str(state))
    assert done.returncode == 0, done.stdout
    found = results_of(tmp_path / "results")
    assert [p["counted"] for p in found["points"]] == [True, True]
    assert found["verdicts"] == []
    assert found["hosts"][0]["volumes"][0]["path"] == str(alias)
    assert left_behind(state) == []
