# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils.fio_job import (
    JobError,
    Target,
    Workload,
    file_name,
    parse_job,
    render_job,
    targets_of,
)
from hypothesis import given
from hypothesis import strategies as st


def a_workload(**changes: Any) -> Workload:
    mapping = {"name": "w", "rw": "randread", "block_size": "4k", "io_depth": 32} | changes
    return Workload.from_mapping(mapping)


def a_target(name: str = "thin01", filename: str = "volumes/thin01", seed: int = 7, **changes: Any) -> Target:
    return Target(**({"name": name, "filename": filename, "seed": seed, "block": True} | changes))


def options_of(workload: Workload, target: Target | None = None, runtime_s: int = 5, **changes: Any) -> dict[str, str]:
    """All options that hold for one volume; asking for one that is not there is a KeyError."""
    arguments = {"ramp_s": 1} | changes
    (_global, common), (_section, own) = parse_job(render_job(workload, [target or a_target()], runtime_s, **arguments))
    return {**dict(common), **dict(own)}


def refusal_of(**changes: Any) -> str:
    with pytest.raises(JobError) as refused:
        a_workload(**changes)
    sentence = str(refused.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence


def test_the_job_of_two_volumes_is_one_file_with_a_group_for_each() -> None:
    text = render_job(a_workload(), [a_target(), a_target("thin02", "volumes/thin02", 8)], 60, 15)
    assert text == (
        "[global]\nioengine=io_uring\ndirect=1\nrw=randread\nbs=4096\niodepth=32\nnumjobs=1\ntime_based=1\nruntime=60\n"
        "ramp_time=15\nrandrepeat=0\nnorandommap=1\ngroup_reporting=1\nlat_percentiles=1\nclat_percentiles=0\n"
        "[thin01]\nnew_group=1\nfilename=volumes/thin01\nrandseed=7\nallow_file_create=0\n"
        "[thin02]\nnew_group=1\nfilename=volumes/thin02\nrandseed=8\nallow_file_create=0\n"
    )


def test_no_option_is_a_word_or_has_a_unit() -> None:
    options = options_of(a_workload(rw="randrw", read_percent=70, working_set="1GiB", direct="false", rate_iops=1000))
    words = {"ioengine", "rw", "filename"}
    assert all(value.replace(",", "").isdigit() for key, value in options.items() if key not in words)
    assert (options["bs"], options["size"], options["direct"]) == ("4096", "1073741824", "0")


def test_the_mix_is_given_for_mixed_patterns_only() -> None:
    assert options_of(a_workload(rw="randrw", read_percent=70))["rwmixread"] == "70"
    assert options_of(a_workload(rw="readwrite"))["rw"] == "rw"
    assert "rwmixread" not in options_of(a_workload())


def test_only_random_patterns_give_up_the_block_map_and_only_writers_refill_their_buffers() -> None:
    random_read, sequential_write = options_of(a_workload()), options_of(a_workload(rw="write"))
    assert "norandommap" in random_read
    assert "refill_buffers" not in random_read
    assert "norandommap" not in sequential_write
    assert "refill_buffers" in sequential_write
    assert options_of(a_workload(rw="write", direct=False))["end_fsync"] == "1"


def test_a_file_may_be_created_and_a_device_may_not() -> None:
    assert options_of(a_workload())["allow_file_create"] == "0"
    assert "allow_file_create" not in options_of(a_workload(), a_target(block=False))


def test_a_rate_is_split_by_direction_and_job_because_fio_limits_each_on_its_own() -> None:
    assert options_of(a_workload(rw="randrw", read_percent=70, num_jobs=2, rate_iops=1000))["rate_iops"] == "350,150"
    assert options_of(a_workload(num_jobs=4, rate_iops=1000))["rate_iops"] == "250"


def test_sequential_jobs_get_a_part_of_the_volume_each() -> None:
    workload = a_workload(rw="read", num_jobs=3)
    known = options_of(workload, a_target(size_bytes=10**6))
    assert (known["size"], known["offset_increment"]) == ("331776", "331776")
    assert int(known["size"]) % 4096 == 0
    assert 3 * int(known["size"]) <= 10**6
    unknown = options_of(workload)
    assert (unknown["size"], unknown["offset_increment"]) == ("33%", "33%")


def test_a_working_set_is_shared_by_random_jobs_and_divided_among_sequential_ones() -> None:
    random = options_of(a_workload(working_set="1MiB", num_jobs=4))
    assert random["size"] == "1048576"
    assert "offset_increment" not in random
    assert options_of(a_workload(rw="read", working_set="1MiB", num_jobs=4))["size"] == "262144"
    assert "size" not in options_of(a_workload(), a_target(size_bytes=10**12))


def test_a_working_set_larger_than_the_volume_is_refused() -> None:
    with pytest.raises(JobError, match="'thin01' has only 4096"):
        options_of(a_workload(working_set="1MiB"), a_target(size_bytes=4096))


def test_interval_logs_have_one_clock_and_one_interval() -> None:
    options = options_of(a_workload(), log_interval_ms=250, log_prefix="points/p01.logs/fio")
    assert options["write_iops_log"] == "points/p01.logs/fio"
    assert options["log_avg_msec"] == options["iopsavgtime"] == options["bwavgtime"] == "250"
    assert options["log_unix_epoch"] == "1"


def test_auto_is_written_as_io_uring() -> None:
    assert options_of(a_workload(engine="auto"))["ioengine"] == "io_uring"


def test_titles_say_what_is_done() -> None:
    assert a_workload().title == "4 KiB random read, queue depth 32"
    mixed = a_workload(rw="randrw", read_percent=70, io_depth=64, num_jobs=4)
    assert mixed.title == "4 KiB random 70/30 read/write, queue depth 64 x 4 jobs"
    limited = a_workload(rw="write", block_size="256k", rate_iops=1000, working_set="10GiB", direct=False)
    assert limited.title == "256 KiB sequential write, queue depth 32, within 10 GiB, at 1,000 IOPS, buffered"


def test_a_workload_is_plain_data_and_back() -> None:
    workload = a_workload(rw="randrw", read_percent=70, working_set="1GiB", rate_iops=500)
    assert Workload.from_mapping(workload.to_mapping()) == workload


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rw": "randtrim"}, ["randtrim", "randrw"]),
        ({"engine": "windowsaio"}, ["windowsaio", "libaio"]),
        ({"engine": "psync"}, ["io_depth 32", "psync is synchronous"]),
        ({"engine": "mmap"}, ["io_depth 32", "mmap is synchronous"]),
        ({"engine": "libaio", "direct": False}, ["libaio", "direct"]),
        ({"read_percent": 70}, ["read_percent 70", "randread means 100"]),
        ({"rw": "randrw", "read_percent": 100}, ["read_percent 100", "1 to 99"]),
        ({"block_size": 1000}, ["block_size_bytes 1000", "multiple of 512"]),
        ({"block_size": "4 potatoes"}, ["block_size_bytes", "potatoes"]),
        ({"block_size_bytes": 4096}, ["both block_size and block_size_bytes"]),
        ({"io_depth": 0}, ["io_depth 0", "at least 1"]),
        ({"num_jobs": -1}, ["num_jobs -1", "at least 1"]),
        ({"num_jobs": "many"}, ["num_jobs 'many'", "whole number"]),
        ({"num_jobs": True}, ["num_jobs True", "whole number"]),
        ({"direct": "maybe"}, ["direct 'maybe'", "true or false"]),
        ({"iodepth": 4}, ["unknown key 'iodepth'", "io_depth"]),
        ({"rw": None}, ["no rw"]),
        ({"name": "a/b"}, ["'a/b'", "file name"]),
        ({"rate_iops": 1, "num_jobs": 4}, ["rate_iops 1", "each job"]),
        ({"working_set": "1k"}, ["working_set_bytes 1024", "one block"]),
    ],
)
def test_a_workload_that_would_not_mean_what_it_says_is_refused(changes: dict[str, Any], words: list[str]) -> None:
    sentence = refusal_of(**changes)
    assert all(word in sentence for word in words), sentence


def test_buffered_io_may_have_any_block_size_and_synchronous_engines_depth_one() -> None:
    assert a_workload(block_size=1000, direct=False).block_size_bytes == 1000
    assert a_workload(engine="psync", io_depth=1).io_depth == 1


@pytest.mark.parametrize(
    ("runtime_s", "ramp_s", "words"),
    [
        (5, 5, "report the ramp"),
        (5, 6, "report the ramp"),
        (0, 0, "runtime 0"),
        (1.5, 0, "runtime 1.5"),
        (5, -1, "ramp -1"),
    ],
)
def test_durations_fio_would_misread_are_refused(runtime_s: Any, ramp_s: Any, words: str) -> None:
    with pytest.raises(JobError, match=words):
        render_job(a_workload(), [a_target()], runtime_s, ramp_s)


@pytest.mark.parametrize(
    "filename",
    [
        "x#y",
        "x;y",
        " x",
        "x ",
        "",
        "x\ny",
        "x\ty",
        "x\x7f",
        "${HOME}/x",
        "a$ncpus",
        "$pagesize",
        "$mb_memory",
        "-",
        "x" * 4001,
    ],
)
def test_a_file_name_fio_would_take_for_another_is_refused(filename: str) -> None:
    with pytest.raises(JobError, match="'thin01'"):
        a_target(filename=filename)


@pytest.mark.parametrize("name", ["", " a", "a ", "a#b", "a;b", "[a", "a]", "a\nb", "global", "global2", "${HOME}"])
def test_a_volume_name_that_cannot_be_a_section_is_refused(name: str) -> None:
    with pytest.raises(JobError, match="volume name"):
        a_target(name=name)


@pytest.mark.parametrize("seed", [0, -1, 2**63])
def test_a_seed_fio_cannot_hold_is_refused(seed: int) -> None:
    with pytest.raises(JobError, match="seed"):
        a_target(seed=seed)


def test_two_volumes_never_share_a_name_or_a_file() -> None:
    for changed in ({"name": "b", "seed": 8}, {"filename": "b", "seed": 8}):
        with pytest.raises(JobError, match="two volumes with the"):
            render_job(a_workload(), [a_target(), a_target(**changed)], 5, 1)
    with pytest.raises(JobError, match="no volume"):
        render_job(a_workload(), [], 5, 1)


@pytest.mark.parametrize(("first", "second", "num_jobs"), [(12, 6, 1), (12, 4, 2), (12, 3, 2)])
def test_seeds_that_fio_would_turn_into_one_are_refused(first: int, second: int, num_jobs: int) -> None:
    targets = [a_target(seed=first), a_target("thin02", "b", second)]
    with pytest.raises(JobError, match="same blocks"):
        render_job(a_workload(num_jobs=num_jobs), targets, 5, 1)


def test_equal_seeds_are_no_danger_because_fio_numbers_its_processes() -> None:
    render_job(a_workload(), [a_target(seed=7), a_target("thin02", "b", 7)], 5, 1)


names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20) | st.text(
    "\\: #;[]=,$a{", min_size=1, max_size=9
)


@given(names, names)
def test_every_name_is_refused_or_comes_back_unchanged(name: str, filename: str) -> None:
    try:
        target = a_target(name=name, filename=filename)
    except JobError:
        return
    section, options = parse_job(render_job(a_workload(), [target], 5, 1))[1]
    assert (section, dict(options)["filename"]) == (name, filename)


# -- directories ------------------------------------------------------------------------------------------------------


def a_directory(**changes: Any) -> Target:
    return a_target(**({"filename": "/mnt/data/hostmax-r-h", "directory": True} | changes))


@pytest.mark.parametrize("rw", ["randread", "read", "write"])
def test_each_job_of_a_directory_has_a_file_of_its_own_that_is_there(rw: str) -> None:
    options = options_of(a_workload(rw=rw, num_jobs=4, working_set="64MiB"), a_directory())
    wanted = {
        "directory": "/mnt/data/hostmax-r-h",
        "filename_format": "hostmax.$jobnum.$filenum",
        "nrfiles": "1",
        "size": str(16 * 2**20),
        # fio neither makes, nor allocates, nor lengthens a file
        "allow_file_create": "0",
        "fallocate": "none",
    }
    assert {key: options[key] for key in wanted} == wanted
    assert not {"filename", "offset_increment", "create_on_open"} & set(options)


def test_the_part_of_a_file_that_is_used_is_whole_blocks() -> None:
    workload = a_workload(block_size="64k", num_jobs=3, working_set="1MiB")
    assert options_of(workload, a_directory())["size"] == str(5 * 65536)


def test_a_directory_without_a_working_set_is_refused() -> None:
    with pytest.raises(JobError, match="has no working_set, and a directory has no size of its own: set it"):
        options_of(a_workload(), a_directory())


def test_a_colon_in_the_name_of_a_directory_is_no_list_of_two() -> None:
    job = render_job(a_workload(working_set="1MiB"), [a_directory(filename="/mnt/a:b/own")], 5, 1)
    assert "directory=/mnt/a\\:b/own\n" in job
    assert targets_of(job) == [("thin01", "/mnt/a:b/own")]


def test_two_volumes_in_one_directory_are_refused() -> None:
    with pytest.raises(JobError, match="two volumes with the file name"):
        render_job(a_workload(working_set="1MiB"), [a_directory(), a_directory(name="b", seed=8)], 5, 1)


@pytest.mark.parametrize(
    "more",
    ["filename=/dev/sda\n", "directory=/\n", "opendir=/\n", "filename_format=$jobname\n", "include=/etc/passwd\n"],
)
def test_a_section_that_names_more_than_its_directory_names_no_plain_target(more: str) -> None:
    job = render_job(a_workload(working_set="1MiB"), [a_directory()], 5, 1)
    assert targets_of(job + more) == [("thin01", None)]


def test_the_file_of_a_job_is_called_as_fio_calls_it() -> None:
    assert [file_name(0), file_name(11)] == ["hostmax.0.0", "hostmax.11.0"]
