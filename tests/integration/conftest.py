"""Fixtures of the tests that need hosts of their own."""

from __future__ import annotations

import os

import pytest
from _pytest.runner import runtestprotocol

from tests.lab import Lab
from tests.lab.kernel import KernelLab, missing


@pytest.fixture
def lab():
    """Test hosts, made in the test and gone after it."""
    with Lab() as made:
        yield made


@pytest.fixture(scope="session")
def kernel_lab():
    """Guests with a kernel of their own: those of `make lab-up` where they are up, else made for this session."""
    reason = missing()
    if reason is not None:
        pytest.skip(f"guests: {reason}")
    guests = KernelLab()
    ours = guests.up()
    yield guests
    if ours:
        guests.down()


def pytest_collection_modifyitems(items):
    """What takes minutes on emulated guests is run by ``make guests``."""
    if os.environ.get("HOSTMAX_THOROUGH"):
        return
    for item in items:
        if item.get_closest_marker("thorough"):
            item.add_marker(pytest.mark.skip(reason="takes minutes on emulated guests: make guests"))


def pytest_runtest_protocol(item, nextitem):
    """A test on guests that fails is run once more: an emulated machine stalls for seconds when its host is busy."""
    if "kernel_lab" not in getattr(item, "fixturenames", ()):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    if any(report.failed for report in reports):
        _forget_failed_fixtures(item)
        item._initrequest()
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _forget_failed_fixtures(item):
    """A fixture that failed is made again, and not failed again from memory."""
    for fixtures in item._fixtureinfo.name2fixturedefs.values():
        for fixture in fixtures:
            if fixture.cached_result is not None and fixture.cached_result[2] is not None:
                fixture.cached_result = None
