"""Counters of an NFS client in a window of ten seconds, as small as a rule needs them."""

from __future__ import annotations

SOURCE = "10.0.0.4:/vol1"


def op(ops, queue_ms=0.0, rtt_ms=1.0, extra_ms=0.0, again=0, timeouts=0):
    """One operation whose every request took these times."""
    return {
        "ops": ops,
        "transmissions": ops + again,
        "timeouts": timeouts,
        "bytes_sent": 100 * ops,
        "bytes_received": 8000 * ops,
        "queue_ms": round(ops * queue_ms),
        "rtt_ms": round(ops * rtt_ms),
        "execute_ms": round(ops * (queue_ms + rtt_ms + extra_ms)),
        "errors": 0,
    }


def mount(reads=None, connections=1, slot_wait=0.0, socket_wait=0.0, per_connection=None, **changes):
    """One mount; the waits are mean lengths that a send met on its connection."""
    reads = reads or op(20_000)
    sends = per_connection or [reads["ops"] // connections] * connections
    total = sum(sends)
    figures = {
        "seconds": 10.0,
        "vers": "3",
        "ops": {"READ": reads},
        "events": {},
        "bytes": {},
        "xprt": {
            "protocol": "tcp",
            "connections": connections,
            "connects": 0,
            "reconnected": 0,
            "sends": total,
            "recvs": total,
            "bad_xids": 0,
            "req_u": total,
            "bklog_u": round(slot_wait * total),
            "sending_u": round(socket_wait * total),
            "pending_u": 0,
            "max_slots": 2,
            "per_connection_sends": sends,
            "shared_with": None,
        },
        "slots_limit": 65536,
        "session_slots": None,
    }
    for name, value in changes.items():
        if name in figures["xprt"]:
            figures["xprt"][name] = value
        else:
            figures[name] = value
    return figures


def net(rx=1e6, tx=1e6, speed=None, retrans=0, **more):
    """Traffic of one interface, and of others by name: (received, sent, speed)."""
    interfaces = {"eth0": (rx, tx, speed), **more}
    return {
        "interfaces": {
            name: {"rx_bytes_per_s": down, "tx_bytes_per_s": up, "drops": 0, "speed_bytes_per_s": carries}
            for name, (down, up, carries) in interfaces.items()
        },
        "tcp": {"out_segs": 10_000, **({"retrans_segs": retrans} if retrans else {})},
        "softnet": {"dropped": 0, "time_squeeze": 0},
    }
