"""Which results end a play in failure."""

from __future__ import annotations

import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils.exit_policy import DEFAULT, reason_to_fail


def results(verdict="pass", counted=True, host="ok"):
    return {
        "verdicts": [{"name": "host maximum", "status": verdict, "reason": "why"}],
        "points": [{"id": "p01", "counted": counted}],
        "hosts": [{"name": "h1", "status": host, "reason": "gone"}],
    }


@pytest.mark.parametrize(
    ("verdict", "fails"), [("pass", False), ("inconclusive", False), ("fail", True), ("invalid", True)]
)
def test_failed_and_invalid_verdicts_fail_by_default(verdict, fails):
    assert (reason_to_fail(results(verdict), DEFAULT) is not None) == fails


def test_a_point_that_does_not_count_is_invalid():
    assert "p01" in reason_to_fail(results(counted=False), DEFAULT)
    assert reason_to_fail(results(counted=False), ["fail"]) is None


def test_a_failed_host_is_named_with_its_reason():
    assert "host h1 failed: gone" in reason_to_fail(results(host="failed"), DEFAULT)


def test_never_silences_everything():
    assert reason_to_fail(results("fail", counted=False, host="failed"), ["never", "fail"]) is None


def test_inconclusive_fails_where_asked():
    assert "inconclusive" in reason_to_fail(results("inconclusive"), ["inconclusive"])


def test_many_reasons_stay_a_sentence():
    found = {**results(), "verdicts": [{"name": f"v{k}", "status": "fail", "reason": "why"} for k in range(20)]}
    assert reason_to_fail(found, DEFAULT).endswith("v4: fail (why); and 15 more in the report")
