"""Fixtures of the tests that need hosts of their own."""

from __future__ import annotations

import pytest

from tests.lab import Lab


@pytest.fixture
def lab():
    """Test hosts, made in the test and gone after it."""
    with Lab() as made:
        yield made
