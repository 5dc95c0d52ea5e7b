# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Limits of an NFS client, from the kernel's counters: where requests wait before they are sent, or who answers late.

It must not know how the counters were read, or anything of conditions and verdicts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.units import format_count, format_latency
from ansible_collections.hostmax.storage.plugins.plugin_utils.limit import Context, Limit, on_most
from ansible_collections.hostmax.storage.plugins.plugin_utils.limits_net import counters_of, segments_sent_again
from ansible_collections.hostmax.storage.plugins.plugin_utils.nfs_figures import DATA, nfs_figures

Json = dict[str, Any]

# share of a request's time that it waits in the client; below it, whoever answers decides
QUEUE_LEAST = 0.20
# of the requests that wait, those for one cause: with less of them it is not the cause
WAIT_LEAST = 0.30
# of the slots there are; one less than all is in use when the last is just being given
SLOTS_FULL = 0.95
# of a request's time, that of the network and the server
ANSWER_LEAST = 0.70
# of an I/O's time as fio sees it, that of its NFS requests
NFS_LEAST = 0.50
# answers "try again later" for each 1,000 requests
DELAYS_LEAST = 1.0
# TCP segments sent again
LOSS_LEAST = 0.02
# the busiest connection against the mean, and how many requests make a mean
UNEVEN, UNEVEN_SENDS = 2.0, 200


@dataclass(frozen=True, slots=True)
class Load:
    """What one host's NFS client did in the window; times in ms for a READ or WRITE, waits in requests."""

    host: str
    figures: Mapping[str, Any]
    rate: float
    queue_ms: float
    rtt_ms: float
    execute_ms: float
    connections: int
    slot_wait: float
    socket_wait: float
    sessions: bool
    sends: tuple[int, ...]
    lat_ms: float | None
    lost: float | None

    @property
    def queued(self) -> float:
        """Requests that waited in the client at any moment (Little's law)."""
        return self.rate * self.queue_ms / 1e3

    @property
    def queue_share(self) -> float:
        """Share of a request's time before it was sent."""
        return self.queue_ms / self.execute_ms if self.execute_ms else 0.0

    @property
    def session_wait(self) -> float:
        """Requests that waited for a session slot: those that waited for nothing else (NFSv4.1 and newer)."""
        return max(0.0, self.queued - self.slot_wait - self.socket_wait) if self.sessions else 0.0

    @property
    def under_way(self) -> float:
        """Requests that were sent and not yet answered, at any moment."""
        return self.rate * self.rtt_ms / 1e3

    def times(self) -> str:
        """How long a request waited, was under way, and took in all, in words."""
        queue, rtt, execute = (format_latency(1e6 * ms) for ms in (self.queue_ms, self.rtt_ms, self.execute_ms))
        return f"a request waited {queue} in the client and {rtt} for its answer, {execute} in all"


def loads(context: Context) -> list[Load]:
    """The hosts that read or wrote through NFS in the window."""
    found = (
        _load(context.point, host, counters["nfs"], counters.get("net"))
        for host, counters in counters_of(context, "nfs").items()
    )
    return [load for load in found if load]


def _load(point: Mapping[str, Any], host: str, mounts: Mapping[str, Json], net: Json | None) -> Load | None:
    figures = nfs_figures([{"counters": {host: {"nfs": mounts}}, "per_host": point["per_host"]}])
    ops = sum(mount["ops"][name]["ops"] for mount in mounts.values() for name in DATA if name in mount["ops"])
    seconds = max(mount["seconds"] for mount in mounts.values())
    if not figures or not ops or seconds <= 0:
        return None
    own = [mount["xprt"] for mount in mounts.values() if not mount["xprt"]["shared_with"]]
    total = (point["per_host"].get(host) or {}).get("total")
    return Load(
        host=host,
        figures=figures,
        rate=ops / seconds,
        queue_ms=figures["queue_ms"],
        rtt_ms=figures["rtt_ms"],
        execute_ms=figures["execute_ms"],
        connections=sum(xprt["connections"] for xprt in own),
        slot_wait=_waiting(own, "bklog_u"),
        socket_wait=_waiting(own, "sending_u"),
        sessions=all(mount["session_slots"] is not None for mount in mounts.values()),
        sends=tuple(count for xprt in own for count in xprt["per_connection_sends"]),
        lat_ms=total["lat_ns"]["mean"] / 1e6 if total and total["lat_ns"] else None,
        lost=segments_sent_again(net),
    )


def _waiting(xprts: Sequence[Mapping[str, Any]], key: str) -> float:
    """Requests in one queue of all connections together: the mean length that a send met, times the connections."""
    return float(sum(xprt[key] / xprt["sends"] * xprt["connections"] for xprt in xprts if xprt["sends"]))


def _rule(context: Context, kind: str, text: str, sentence: Callable[[Load], str | None], *advice: str) -> Limit | None:
    """The limit, where the sentence is said of most hosts that use NFS."""
    everyone = loads(context)
    found = [f"{load.host}: {said}" for load in everyone if (said := sentence(load))]
    return Limit(kind, text, (*found, *advice)) if on_most(found, len(everyone)) else None


def nfs_delay(context: Context) -> Limit | None:
    """The server answered that it had no time now and the client was to ask again later."""

    def sentence(load: Load) -> str | None:
        requests = sum(load.sends)
        each = 1000 * load.figures["delays"] / requests if requests else 0.0
        if each < DELAYS_LEAST:
            return None
        return f"{load.figures['delays']:,} answers were to try again later, {each:.1f} for 1,000 requests"

    return _rule(context, "nfs_delay", "the server, which put requests off", sentence)


def nfs_slots(context: Context) -> Limit | None:
    """Requests waited for a slot of their connection, and all slots were in use."""

    def sentence(load: Load) -> str | None:
        limit, used = load.figures["slots_limit"], load.figures["max_slots"]
        full = limit is None or (used or 0) >= SLOTS_FULL * limit
        waits = load.slot_wait >= max(WAIT_LEAST * load.queued, load.socket_wait)
        if load.queue_share < QUEUE_LEAST or not load.slot_wait or not full or not waits:
            return None
        have = f"all {limit} slots of each connection" if limit else f"{used} slots of a connection"
        return (
            f"{load.slot_wait:,.1f} requests waited for a slot at any moment, with {have} in use on "
            f"{_connections(load)}; {load.times()}"
        )

    return _rule(
        context,
        "nfs_slots",
        "the slots of the client's connections to the server (sunrpc.tcp_max_slot_table_entries)",
        sentence,
        "more slots, set before the first mount of the server, or more connections (nconnect) let more requests out",
    )


def nfs_session_slots(context: Context) -> Limit | None:
    """Requests of NFSv4.1 waited for a slot of their session; more connections have no more of those."""

    def sentence(load: Load) -> str | None:
        waits = load.session_wait >= max(WAIT_LEAST * load.queued, load.slot_wait, load.socket_wait)
        if not load.sessions or load.queue_share < QUEUE_LEAST or not waits:
            return None
        return (
            f"{load.session_wait:,.1f} requests waited at any moment, for neither a connection's slot nor its socket, "
            f"and {load.under_way:,.1f} were under way; the client asks for {load.figures['session_slots']} session "
            f"slots, and the server may grant fewer; {load.times()}"
        )

    return _rule(
        context,
        "nfs_session_slots",
        "the slots of the NFSv4.1 session (nfs.max_session_slots, or what the server grants)",
        sentence,
        "nconnect adds no session slots",
    )


def tcp_socket(context: Context) -> Limit | None:
    """Requests waited to be written into their connection's socket: TCP's window, or the CPU that writes."""

    def sentence(load: Load) -> str | None:
        waits = load.socket_wait >= max(WAIT_LEAST * load.queued, load.slot_wait)
        if load.queue_share < QUEUE_LEAST or not waits:
            return None
        return f"{load.socket_wait:,.1f} requests waited for the socket of {_connections(load)}; {load.times()}"

    return _rule(
        context,
        "tcp_socket",
        "the sockets of the client's connections (TCP's window, the network behind it, or the CPU that fills them)",
        sentence,
    )


def retransmissions(context: Context) -> Limit | None:
    """TCP had to send so much again that its windows cannot have stayed open."""

    def sentence(load: Load) -> str | None:
        if load.lost is None or load.lost < LOSS_LEAST:
            return None
        return f"{load.lost:.1%} of TCP segments were sent again; {load.times()}"

    return _rule(context, "retransmissions", "packets lost on the network", sentence)


def uneven(context: Context) -> Limit | None:
    """One connection carried far more than the others, so that they were not used alike."""

    def sentence(load: Load) -> str | None:
        count, total = len(load.sends), sum(load.sends)
        if count < 2 or total < UNEVEN_SENDS or max(load.sends) < UNEVEN * total / count:
            return None
        return f"the busiest of {count} connections sent {max(load.sends):,} of {total:,} requests"

    return _rule(context, "nfs_uneven", "connections to the server that are not used alike", sentence)


def nfs_client(context: Context) -> Limit | None:
    """Most of an I/O's time passed before its NFS requests were made or after they had ended."""

    def sentence(load: Load) -> str | None:
        if load.lat_ms is None or load.execute_ms >= NFS_LEAST * load.lat_ms:
            return None
        return (
            f"an I/O took {format_latency(1e6 * load.lat_ms)}, its NFS requests {format_latency(1e6 * load.execute_ms)}"
        )

    if not context.workload["direct"]:
        return None
    return _rule(context, "nfs_client", "the client's own file system layer, above NFS requests", sentence)


def nfs_server(context: Context) -> Limit | None:
    """Requests were sent at once and waited for their answers: the server's time, or the network's latency."""

    def sentence(load: Load) -> str | None:
        if load.queue_share >= QUEUE_LEAST or load.rtt_ms < ANSWER_LEAST * load.execute_ms:
            return None
        lost = f"; {load.lost:.1%} of TCP segments were sent again" if load.lost else ""
        return f"{load.times()}; {load.under_way:,.1f} requests were under way on {_connections(load)}{lost}"

    offered = context.workload["io_depth"] * context.workload["num_jobs"]
    total = context.point["total"]
    advice = []
    if total["lat_ns"]:
        advice.append(
            f"{offered} I/Os outstanding a volume gave {format_count(total['iops'])} IOPS at a mean latency of "
            f"{format_latency(total['lat_ns']['mean'])}; by Little's law {2 * offered} would give up to "
            f"{format_count(2 * total['iops'])} IOPS, if the latency did not grow"
        )
    return _rule(context, "nfs_server", "the server's answers, or the network's latency", sentence, *advice)


def _connections(load: Load) -> str:
    return f"{load.connections} connection{'' if load.connections == 1 else 's'}"


# in the order of causes: what waits for a slot also makes the answers of the rest look slow
RULES: Sequence[Callable[[Context], Limit | None]] = (
    nfs_delay,
    nfs_slots,
    nfs_session_slots,
    tcp_socket,
    retransmissions,
    uneven,
    nfs_client,
    nfs_server,
)
