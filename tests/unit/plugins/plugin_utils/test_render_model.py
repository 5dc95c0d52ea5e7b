"""The sentences people read first: headline, circumstances, reasons, verdict line."""

from __future__ import annotations

import jsonschema
import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_model import (
    clean,
    read_sections,
    verdict_line,
)
from ansible_collections.hostmax.storage.plugins.plugin_utils.render_trouble import (
    failed_gates,
    failed_hosts,
    run_reasons,
)

from . import results_example as examples

VARIANTS = ("example", "partial", "invalid_gate", "failing", "hostile", "three_workloads", "mixed")


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_of_the_example_meets_the_schema(variant):
    jsonschema.Draft202012Validator(examples.schema()).validate(getattr(examples, variant)())


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("run", "status"), "finished"),
        (("hosts", 0, "surprise"), 1),
        (("points", 0, "total"), None),
        (("points", 0, "status"), "invalid"),
        (("points", 0, "limit", "kind"), "moon"),
        (("points", 0, "cpu", "reference", "busy"), 99.6),
        (("verdicts", 0, "measured"), None),
        (("run", "started_utc"), "30.11.2026 19:42"),
        (("run", "settings"), {"runtime": 4}),
    ],
)
def test_the_schema_refuses_what_the_contract_does_not_allow(path, value):
    results = examples.example(rungs=(1, 2))
    place = results
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(examples.schema()).validate(results)


def headline(results):
    return read_sections(results)[0].headline


def test_the_headline_names_figure_load_and_limit():
    assert headline(examples.example()) == (
        "Host maximum: 430,248 IOPS at 4 KiB random read with 20 volumes on 1 host; held back by the client's CPUs"
    )


def test_a_ladder_that_never_bent_gives_a_lower_bound():
    assert headline(examples.example(rungs=(1, 2, 4))).startswith("Host maximum: at least 100,368 IOPS")


def test_a_single_point_claims_no_lower_bound():
    assert headline(examples.example(rungs=(4,))).startswith("Host maximum: 100,368 IOPS")


def test_large_blocks_speak_of_bandwidth_and_depth_one_of_latency():
    _iops, bandwidth, latency = read_sections(examples.three_workloads())
    assert bandwidth.headline.startswith("Host maximum: at least 9.60 GB/s at 256 KiB random read")
    assert latency.headline.startswith("Latency: 312 us mean and 462 us p99 at 4 KiB random read, one I/O at a time")
    assert latency.headline.endswith("420 us mean with 20 volumes")


def test_several_hosts_are_said_in_the_headline():
    assert "with 20 volumes on each of 3 hosts; held back by the clients' CPUs" in headline(examples.example(hosts=3))


def test_without_a_counted_point_there_is_no_maximum():
    results = examples.example(rungs=(1,))
    results["points"][0].update(counted=False, status="invalid")
    results["ladders"][0].update(maximum=None, limit=None)
    assert headline(results) == "No host maximum at 4 KiB random read: none of its 1 point could be counted"


def test_a_workload_without_a_ladder_is_still_shown():
    results = examples.example(rungs=(1, 2))
    results["ladders"] = []
    assert [len(section.rows) for section in read_sections(results)] == [2]


def test_the_sum_of_caps_is_not_known_for_a_mix_because_caps_hold_for_each_direction():
    assert read_sections(examples.mixed())[0].caps == {}
    assert read_sections(examples.example())[0].caps["reference"]["thin01"] == 25000


def test_the_binding_cap_depends_on_the_block_size():
    assert read_sections(examples.example(workloads=("256k-randread",)))[0].caps["reference"]["thin01"] == 480000000


def test_reasons_of_a_partial_run_name_the_host_the_points_and_the_gap():
    host, gap, some_hosts, points = run_reasons(examples.partial())
    assert host == "Host client0002 is unreachable: Connection timed out while collecting p03-4k-randread-v04."
    assert gap == "Only 6 of 7 points were measured."
    assert some_hosts == (
        "4 points were not measured by all hosts: p03-4k-randread-v04, p04-4k-randread-v08 and 2 more."
    )
    assert points == "1 point is not counted: p07-4k-randread-v20."


def test_hosts_that_failed_for_the_same_reason_share_a_sentence():
    results = examples.example(hosts=200, rungs=(1,))
    for host in results["hosts"][10:]:
        host.update(status="unreachable", reason="Connection refused")
    results["hosts"][0].update(status="late", reason="it began p01 3.2 s after the others")
    assert failed_hosts(results) == [
        "Host client0001 was late: it began p01 3.2 s after the others.",
        "Hosts client0011, client0012 and 188 more are unreachable: Connection refused.",
    ]


def test_a_thousand_reasons_are_a_screen_of_sentences():
    results = examples.example(hosts=1000, rungs=(1,))
    for number, host in enumerate(results["hosts"]):
        host.update(status="failed", reason=f"fio was killed by signal {number}")
    sentences = failed_hosts(results)
    assert len(sentences) == 21
    assert sentences[-1] == "980 more hosts did not take part: results.json names them."


def test_the_same_gate_of_many_points_is_one_sentence():
    assert failed_gates(examples.partial()) == [
        "hosts, p03-4k-randread-v04, p04-4k-randread-v08 and 2 more: not measured by client0002."
    ]


@pytest.mark.parametrize(
    ("variant", "line"),
    [
        ("example", ("pass", "All 2 expected figures reached")),
        ("failing", ("fail", "1 of 2 expected figures missed")),
        ("invalid_gate", ("invalid", "The run is invalid: its figures may not be quoted")),
        ("partial", ("invalid", "2 of 2 expected figures could not be judged")),
    ],
)
def test_the_verdict_line_tells_the_worst(variant, line):
    assert verdict_line(getattr(examples, variant)()) == line


def test_cursor_movements_and_text_reversal_do_not_survive():
    assert clean("a\x1b[2J\u202eb\n\ud800c") == "a [2J b c"
