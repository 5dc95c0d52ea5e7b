"""Instants of a host on the controller's clock, and what is told of clocks that were wrong."""

from __future__ import annotations

import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils.clocks import (
    MOST_SENTENCES,
    Clock,
    Reading,
    clock_of_host,
    clock_warnings,
)
from hypothesis import given
from hypothesis import strategies as st


def read(offset_s, at_s, uncertainty_s=0.001):
    return {"offset_s": offset_s, "uncertainty_s": uncertainty_s, "at_s": at_s}


def test_a_clock_that_was_never_read_is_taken_as_ours():
    assert Clock().to_controller(5.0) == 5.0
    assert clock_of_host({}).drift_s is None


def test_an_offset_is_taken_off():
    clock = clock_of_host({"clock": {"before": read(30.0, 100.0), "after": None}})
    assert clock.to_controller(150.0) == 120.0


def test_facts_with_one_reading_alone_are_understood():
    clock = clock_of_host({"clock_offset_s": 2.0, "clock_uncertainty_s": 0.25})
    assert (clock.to_controller(12.0), clock.uncertainty_s) == (10.0, 0.25)


def test_between_two_readings_the_offset_goes_in_a_straight_line_and_stays_beyond_them():
    clock = clock_of_host({"clock": {"before": read(1.0, 100.0), "after": read(3.0, 200.0, 0.02)}})
    assert clock.to_controller(51.0) == 50.0
    assert clock.to_controller(101.0) == 100.0
    assert clock.to_controller(152.0) == pytest.approx(150.0)
    assert clock.to_controller(203.0) == pytest.approx(200.0)
    assert clock.to_controller(303.0) == pytest.approx(300.0)
    assert (clock.drift_s, clock.uncertainty_s) == (2.0, 0.02)


def test_a_clock_that_was_set_during_the_run_has_not_drifted():
    # set 5 s ahead at 150: samples before have a shift of 0, samples after one of 5
    clock = clock_of_host({"clock": {"before": read(1.0, 100.0), "after": read(6.0, 200.0)}}, stepped_s=5.0)
    assert clock.drift_s == 0.0
    assert clock.to_controller(141.0, 0.0) == 140.0
    assert clock.to_controller(166.0, 5.0) == 160.0


@given(st.floats(-1e3, 1e3), st.floats(-0.5, 0.5), st.floats(0, 2000), st.floats(0, 100))
def test_later_on_the_host_is_later_on_the_controller(offset_s, drift_s, host_s, more_s):
    clock = Clock(Reading(offset_s, 0.0, 100.0), Reading(offset_s + drift_s, 0.0, 300.0))
    assert clock.to_controller(host_s) <= clock.to_controller(host_s + more_s) + 1e-9


def test_a_wrong_clock_is_named_as_harmless():
    (warning,) = clock_warnings({"a": Clock(Reading(30.0, 0.001, 0.0)), "b": Clock(Reading(0.9, 0.001, 0.0))})
    assert warning.startswith("a: its clock is 30.0 s ahead of the controller's; all its times were corrected")
    assert "behind" in clock_warnings({"a": Clock(Reading(-30.0, 0.001, 0.0))})[0]


@pytest.mark.parametrize(
    ("drift_s", "uncertainty_s", "told"),
    [(0.04, 0.0, False), (0.06, 0.001, True), (-0.06, 0.001, True), (0.3, 0.2, False)],
)
def test_a_drift_is_told_where_it_is_large_and_sure(drift_s, uncertainty_s, told):
    clock = Clock(Reading(0.0, uncertainty_s, 0.0), Reading(drift_s, uncertainty_s, 100.0))
    assert bool(clock_warnings({"a": clock})) is told


def test_a_clock_that_was_set_is_told():
    (warning,) = clock_warnings({"a": Clock(Reading(0.0, 0.001, 0.0), None, -0.5)})
    assert warning == (
        "a: its clock was set by -0.50 s during the run; its times were corrected by its monotonic clock."
    )


def test_a_thousand_wrong_clocks_are_a_few_sentences_the_worst_first():
    warnings = clock_warnings({f"h{n}": Clock(Reading(2.0 + n, 0.001, 0.0)) for n in range(1000)})
    assert len(warnings) == MOST_SENTENCES + 1
    assert warnings[0].startswith("h999: its clock is 1,001.0 s ahead")
    assert warnings[-1] == "995 more host(s) have clocks more than 1 s off; all times were corrected."
