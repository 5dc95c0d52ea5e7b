"""Fixtures of the tests that need hosts of their own."""

from __future__ import annotations

import pytest

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
