"""The guests' disk: Debian's packages and the files beside this one, made once and kept between runs.

It must not know how a guest is started; it gives a directory with a kernel, an initial RAM disk and a root file system.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import pathlib
import shutil
import tempfile
import time
from collections.abc import Iterator
from types import ModuleType

from ..machine import LabError, run, tool

HERE = pathlib.Path(__file__).resolve().parent
FILES = HERE / "guest"
TOOLS = (
    "ip",
    "mke2fs",
    "mmdebstrap",
    "nsenter",
    "qemu-img",
    "qemu-system-x86_64",
    "ssh",
    "ssh-keygen",
    "tar",
    "unshare",
)
SUITE = "bookworm"
SIZE = "3G"
BUILD_LIMIT_S = 900.0
UNUSED_S = 14 * 86400.0


def missing() -> str | None:
    """Why this machine cannot have guests; None where it can."""
    if os.geteuid() != 0:
        return "needs root to make the guests' image and network"
    absent = [name for name in TOOLS if tool(name) is None]
    if absent:
        return "needs " + ", ".join(absent)
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "needs /dev/net/tun for the guests' network"
    return None


def cache() -> pathlib.Path:
    """Where images are kept between runs."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(base) / "hostmax-lab"


def recipe() -> str:
    """What the image is made from, as a short hash: an image of another recipe is not used."""
    parts = [(path.name, path.read_text()) for path in sorted(FILES.iterdir())]
    return hashlib.sha256(repr([parts, SUITE, SIZE]).encode()).hexdigest()[:16]


def ensure() -> pathlib.Path:
    """The image's directory: ``root.img``, ``vmlinuz``, ``initrd.img``, ``host_key.pub``; made where it is missing."""
    place = cache()
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    made = place / recipe()
    with _locked(place / "lock"):
        if not (made / "root.img").exists():
            _sweep(place)
            _build(made)
    os.utime(made)
    return made


@contextlib.contextmanager
def _locked(path: pathlib.Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _sweep(place: pathlib.Path) -> None:
    """Remove what a build left that was ended, and images that nobody has used for two weeks."""
    for old in place.iterdir():
        if old.is_dir() and (old.name.startswith("build-") or time.time() - old.stat().st_mtime > UNUSED_S):
            shutil.rmtree(old)


def _build(made: pathlib.Path) -> None:
    work = pathlib.Path(tempfile.mkdtemp(prefix="build-", dir=made.parent))
    try:
        root = work / "root"
        _bootstrap(root)
        _take(root, "boot/vmlinuz-*", work / "vmlinuz")
        _take(root, "boot/initrd.img-*", work / "initrd.img")
        shutil.copy(root / "etc/ssh/ssh_host_ed25519_key.pub", work / "host_key.pub")
        run(["mke2fs", "-q", "-t", "ext4", "-d", str(root), str(work / "root.img"), SIZE], BUILD_LIMIT_S)
        shutil.rmtree(root)
        work.rename(made)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise


def _bootstrap(root: pathlib.Path) -> None:
    """Unpack Debian's packages into a directory, through this machine's own apt settings."""
    engine = _engine()
    run(
        [
            *("mmdebstrap", "--quiet", "--variant=minbase", "--format=directory"),
            f"--include={','.join((FILES / 'packages').read_text().split())}",
            *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in engine.LEFT_OUT),
            *(f"--aptopt={setting}" for setting in engine.apt_settings()),
            # before the kernel's package makes its initial RAM disk
            f'--setup-hook=sh "{FILES}/prepare" "$1" "{FILES}"',
            f'--customize-hook=sh "{FILES}/install" "$1" "{FILES}"',
            *(SUITE, str(root), *engine.apt_sources()),
        ],
        BUILD_LIMIT_S,
    )


def _engine() -> ModuleType:
    """What makes the image of the container hosts knows how apt reaches its servers."""
    path = HERE.parents[2] / "molecule" / "engine.py"
    spec = importlib.util.spec_from_file_location("hostmax_molecule_engine", path)
    if spec is None or spec.loader is None:
        raise LabError(f"{path} cannot be read.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _take(root: pathlib.Path, pattern: str, target: pathlib.Path) -> None:
    found = sorted(root.glob(pattern))
    if not found:
        raise LabError(f"The guests' image has no {pattern}.")
    shutil.copy(found[-1], target)
