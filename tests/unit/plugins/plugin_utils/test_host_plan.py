"""What one host is told of a plan."""

from __future__ import annotations

import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils import host_plan

from .samples_example import planned


def linger_s(*hosts: str, runtime_s: int) -> float:
    point = planned(hosts=hosts)
    point.update(
        hash="h", runtime_s=runtime_s, ramp_s=0, writes=False, log_interval_ms=500, targets={host: [] for host in hosts}
    )
    plan = {
        "hosts": {host: {"volumes": []} for host in hosts},
        "points": [point],
        "settings": {"hostmax_patience_s": 5},
    }
    return host_plan.for_host(plan, hosts[0], {})["linger_s"]


@pytest.mark.parametrize("runtime_s", [4, 600])
def test_an_agent_waits_for_another_round_until_another_hosts_fio_is_given_up(runtime_s):
    # fio is ended as long after its time as the point is, and 30 s at least
    assert linger_s("a", "b", runtime_s=runtime_s) > 5 + max(30, runtime_s)


def test_an_agent_of_one_host_waits_no_longer_than_asked():
    assert linger_s("a", runtime_s=600) == 5
