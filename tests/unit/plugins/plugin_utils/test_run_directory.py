# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

import base64
import collections
import datetime
import json
import multiprocessing
import os
import re
import tracemalloc
from pathlib import Path

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils.sample_pack import pack_sample
from ansible_collections.hostmax.storage.plugins.plugin_utils import run_directory
from ansible_collections.hostmax.storage.plugins.plugin_utils.run_directory import (
    RunDirectoryError,
    append_line,
    create_run,
    new_run_id,
    open_run,
    safe_file_name,
    write_json_atomic,
)
from hypothesis import given
from hypothesis import strategies as st

NOW = datetime.datetime(2026, 11, 30, 20, 40, 0, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))
RUN_ID = "host_max-20261130T194000Z-a1b2c3"
PLAN = {
    **{"schema": "hostmax.plan/1", "run_id": RUN_ID, "hosts": {"h": {}}, "points": [], "settings": {}},
    **{"playbook": "host_max", "created_utc": "2026-11-30T19:40:00Z", "command": "x", "seed": 1, "planned_s": 1.0},
}


@pytest.fixture
def run(tmp_path):
    return create_run(str(tmp_path / "results"), RUN_ID, PLAN)


def refusal(call):
    with pytest.raises(RunDirectoryError) as caught:
        call()
    return str(caught.value)


# -- making one -----------------------------------------------------------------------------------------------------


def test_a_run_id_says_what_ran_and_when_in_utc():
    assert re.fullmatch(r"host_max-20261130T194000Z-[0-9a-f]{6}", new_run_id("host_max", NOW))
    assert new_run_id("host_max", NOW) != new_run_id("host_max", NOW)
    assert re.fullmatch(r"a_b_-.*", new_run_id("a b/", NOW))


def test_a_new_run_holds_its_plan_and_is_the_latest_once_it_measures(run):
    assert json.loads((run.path / "plan.json").read_text()) == PLAN
    assert not (run.path.parent / "latest").exists()
    run.make_latest()
    assert (run.path.parent / "latest").resolve() == run.path
    later = create_run(str(run.path.parent), "other", {**PLAN, "run_id": "other"})
    assert open_run(run.path.parent / "latest").path == run.path
    later.make_latest()
    assert open_run(run.path.parent / "latest").path == later.path
    assert sorted(path.name for path in run.path.parent.iterdir()) == [RUN_ID, "latest", "other"]


def test_a_run_directory_is_never_used_twice(run):
    assert refusal(lambda: create_run(str(run.path.parent), RUN_ID, PLAN)) == (
        f"{run.path} exists already; a run directory is never used twice, start again."
    )


def test_a_directory_called_latest_does_not_stop_a_run(tmp_path):
    (tmp_path / "latest").mkdir()
    run = create_run(str(tmp_path), RUN_ID, PLAN)
    run.make_latest()
    assert run.plan == PLAN
    assert sorted(path.name for path in tmp_path.iterdir()) == [RUN_ID, "latest"]


def test_results_below_a_file_are_refused(tmp_path):
    (tmp_path / "file").write_text("")
    where = tmp_path / "file" / "results"
    assert refusal(lambda: create_run(str(where), RUN_ID, PLAN)) == (
        f"hostmax_results {where}: {tmp_path / 'file'} is not a directory; name another one."
    )


def test_results_that_cannot_be_written_are_refused_before_anything_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(run_directory.os, "access", lambda path, mode: False)
    assert refusal(lambda: run_directory.check_results(str(tmp_path / "new"))) == (
        f"hostmax_results {tmp_path / 'new'}: {tmp_path} is not writable; name another directory."
    )


def test_less_than_fifty_mebibytes_are_too_few(tmp_path, monkeypatch):
    usage = collections.namedtuple("Usage", "total used free")
    monkeypatch.setattr(run_directory.shutil, "disk_usage", lambda path: usage(0, 0, 49 * 1024**2))
    assert refusal(lambda: create_run(str(tmp_path), RUN_ID, PLAN)) == (
        f"hostmax_results {tmp_path}: only 49 MiB are free and a run needs 50 MiB; make room or name another directory."
    )
    assert list(tmp_path.iterdir()) == []


# -- opening one ----------------------------------------------------------------------------------------------------


def test_a_run_that_is_not_there_is_refused(tmp_path):
    where = tmp_path / "nothing"
    assert refusal(lambda: open_run(where)) == (
        f"the run directory {where} does not exist; name one below hostmax_results."
    )


def test_any_directory_is_no_run_directory(tmp_path):
    assert refusal(lambda: open_run(tmp_path)) == (
        f"{tmp_path} is not a run directory, it has no plan.json; name one below hostmax_results."
    )


def test_a_file_is_no_run_directory(run):
    assert refusal(lambda: open_run(run.path / "plan.json")) == (
        f"{run.path / 'plan.json'} is not a directory; name a run directory below hostmax_results."
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"schema": "hostmax.plan/1", "run', "is cut off or damaged, it is no whole JSON document."),
        ("", "is cut off or damaged, it is no whole JSON document."),
        ("[1]", "is not a JSON object, it is none of our files."),
        ('{"schema": "hostmax.plan/9"}', "has the schema 'hostmax.plan/9', this version reads 'hostmax.plan/1'."),
        ("{}", "has the schema None, this version reads 'hostmax.plan/1'."),
        (
            '{"schema": "hostmax.plan/1"}',
            "lacks run_id, playbook, created_utc, command, seed, settings, planned_s, hosts, points;"
            " it was damaged, make another run.",
        ),
        (
            json.dumps({key: value for key, value in PLAN.items() if key != "playbook"}),
            "lacks playbook; it was damaged, make another run.",
        ),
    ],
)
def test_a_plan_that_is_not_whole_is_refused(run, text, sentence):
    (run.path / "plan.json").write_text(text)
    assert refusal(lambda: open_run(run.path)) == f"{run.path / 'plan.json'} {sentence}"


def test_a_run_without_results_asks_for_its_report(run):
    assert refusal(run.read_results) == f"{run.path} has no results.json; make its report first."
    (run.path / "results.json").write_text('{"schema": "x"}')
    assert run.read_results() == {"schema": "x"}


# -- what hosts bring -----------------------------------------------------------------------------------------------


def test_facts_and_status_of_a_host_are_read_back(run):
    assert (run.read_facts("h"), run.read_status("h")) == (None, (None, None))
    run.write_facts("h", {"cpus": 2})
    run.write_status("h", "failed", "why")
    assert (run.read_facts("h"), run.read_status("h")) == ({"cpus": 2}, ("failed", "why"))


def test_the_last_sample_of_a_point_counts_and_fio_s_output_is_kept(run):
    run.add_sample("h", {"point": "p01-w-v01", "volumes": {}, "n": 1}, b"raw")
    run.add_sample("h", {"point": "p01-w-v01", "volumes": {}, "n": 2})
    samples, faults = run.read_samples()
    assert (samples["p01-w-v01"]["h"]["n"], faults) == (2, [])
    assert (run.path / "hosts" / "h" / "p01-w-v01.json.gz").read_bytes() == b"raw"


def test_samples_are_found_by_point_and_read_one_at_a_time(run):
    for host in ("a", "b"):
        for point in ("p01", "p02"):
            run.add_sample(host, pack_sample({"point": point, "volumes": {}, "of": f"{host} {point}"}))
    assert [(host, sample["of"]) for host, sample in run.iter_samples("p02")] == [("a", "a p02"), ("b", "b p02")]
    assert list(run.iter_samples("p09")) == []
    index = run.sample_index()
    assert index.points() == ["p01", "p02"]
    assert {host: sample["of"] for host, sample in index.last().items()} == {"a": "a p02", "b": "b p02"}


def test_a_damaged_sample_is_told_and_the_one_before_it_counts(run):
    run.add_sample("h", {**pack_sample({"point": "p01", "volumes": {}}), "n": 1})
    run.add_sample("h", {**pack_sample({"point": "p01", "volumes": {}}), "n": 2, "volumes_z": "AAAA"})
    run.add_sample("h", pack_sample({"point": "p02", "volumes": {}}))
    index = run.sample_index()
    assert index.of("p01")["h"]["n"] == 1
    assert index.faults == ["samples.jsonl: line 2 is damaged; its sample was left out."]


def test_the_samples_of_many_hosts_are_not_in_memory_together(run):
    fill = base64.b64encode(os.urandom(60_000)).decode()
    for number in range(100):
        run.add_sample(f"h{number}", {**pack_sample({"point": "p01", "volumes": {}}), "fill": fill})
    tracemalloc.start()
    count = sum(len(sample["fill"]) > 0 for _host, sample in run.iter_samples("p01"))
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 100
    assert peak_bytes < 10 * len(fill)


def test_a_run_that_measured_nothing_has_no_samples(run):
    assert run.read_samples() == ({}, [])
    assert "a" not in run.sample_index().of("p1")


def test_a_line_that_was_cut_off_is_told_and_the_others_are_kept(run):
    run.add_sample("h", {"point": "p01", "volumes": {}})
    path = run.path / "samples.jsonl"
    path.write_bytes(path.read_bytes() + b'{"host": "h", "poi')
    samples, faults = run.read_samples()
    assert list(samples) == ["p01"]
    assert faults == [
        "samples.jsonl: line 2 is cut off, the run was ended while it was written; its sample was left out."
    ]


def test_a_sample_after_a_cut_off_line_is_not_glued_to_it(run):
    (run.path / "samples.jsonl").write_bytes(b'{"host": "h", "poi')
    run.add_sample("h", {"point": "p02", "volumes": {}})
    samples, faults = run.read_samples()
    assert list(samples) == ["p02"]
    assert faults == ["samples.jsonl: line 1 is damaged; its sample was left out."]


def _append(path, host):
    for number in range(50):
        append_line(Path(path), json.dumps({"host": host, "number": number, "fill": "x" * 9000}))


def test_hosts_that_write_at_the_same_time_keep_their_lines_apart(tmp_path):
    path = tmp_path / "samples.jsonl"
    workers = [multiprocessing.Process(target=_append, args=(str(path), str(host))) for host in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted((each["host"], each["number"]) for each in found) == sorted(
        (str(host), number) for host in range(4) for number in range(50)
    )


def test_a_file_that_cannot_be_replaced_keeps_what_it_had(run):
    run.write_facts("h", {"cpus": 2})
    with pytest.raises(ValueError, match="Out of range float"):
        write_json_atomic(run.host_path("h") / "facts.json", {"cpus": float("nan")})
    assert run.read_facts("h") == {"cpus": 2}
    assert [path.name for path in run.host_path("h").iterdir()] == ["facts.json"]


def test_a_full_disk_is_told_in_a_sentence():
    assert refusal(lambda: append_line(Path("/dev/full"), "x")) == (
        "/dev/full cannot be written: No space left on device."
    )


# -- names of hosts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "name"),
    [("db1", "db1"), ("../x", "%2E.%2Fx"), (".", "%2E"), ("fe80::1%eth0", "fe80%3A%3A1%25eth0"), ("ä b", "%C3%A4%20b")],
)
def test_a_host_s_name_becomes_a_file_name(host, name):
    assert safe_file_name(host) == name


@given(st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20))
def test_unlike_hosts_never_share_a_directory(one, other):
    try:
        names = [safe_file_name(one), safe_file_name(other)]
    except UnicodeEncodeError:
        return
    assert (names[0] == names[1]) == (one == other)
    assert all("/" not in name and not name.startswith(".") for name in names)


def test_a_host_s_name_that_no_file_can_have_is_refused():
    assert "give the host a shorter alias" in refusal(lambda: safe_file_name("h" * 300))
