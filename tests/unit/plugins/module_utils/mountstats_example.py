"""Texts of /proc/self/mountstats, as small as a test needs them."""

from __future__ import annotations

OPTIONS = "rw,vers=3,rsize=262144,wsize=262144,acregmin=600,acregmax=600,acdirmin=600,acdirmax=600,hard,nocto,proto=tcp"
EVENTS = " ".join(str(n) for n in range(1, 28))
ZERO = {"READ": "0 0 0 0 0 0 0 0 0", "WRITE": "0 0 0 0 0 0 0 0 0"}


def xprt(port=700, connects=1, sends=0, recvs=None, req_u=0, bklog_u=0, max_slots=2, sending_u=0, pending_u=0):
    """One tcp line."""
    recvs = sends if recvs is None else recvs
    return f"tcp {port} 1 {connects} 0 0 {sends} {recvs} 0 {req_u} {bklog_u} {max_slots} {sending_u} {pending_u}"


def block(
    source="10.0.0.4:/vol1",
    path="/mnt/vol1",
    fstype="nfs",
    options=OPTIONS,
    events=EVENTS,
    volume="1 2 3 4 5 6 7 8",
    xprts=None,
    ops=None,
    statvers="1.1",
):
    """The lines of one NFS mount."""
    return "".join(
        [
            f"device {source} mounted on {path} with fstype {fstype} statvers={statvers}\n",
            f"\topts:\t{options}\n\tage:\t130\n\tcaps:\tcaps=0x3fc7,wtmult=512,dtsize=262144,bsize=0,namlen=255\n",
            f"\tsec:\tflavor=1,pseudoflavor=1\n\tevents:\t{events} \n\tbytes:\t{volume} \n",
            "\tRPC iostats version: 1.1  p/v: 100003/3 (nfs)\n",
            *(f"\txprt:\t{line}\n" for line in xprts or [xprt()]),
            "\tper-op statistics\n",
            *(f"\t{name:>12}: {line}\n" for name, line in (ZERO if ops is None else ops).items()),
            "\n",
        ]
    )
