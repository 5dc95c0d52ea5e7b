"""The hosts that molecule tests roles on: containers made, entered and removed with the engine this machine has.

Must not know: Ansible, molecule's files, or what is tested. Needs podman or docker and nothing else: `enter` runs one
sshd on its standard input (for ssh's ProxyCommand), so no network, port, key or connection plugin is in the game.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from typing import Sequence

HERE = pathlib.Path(__file__).resolve().parent
ENGINES = ("podman", "docker")

SUITE = "bookworm"
IMAGE = f"localhost/hostmax-test:{SUITE}"
INSTALLED = ("openssh-server", "procps", "python3")
# kept in the image for roles to install; the second is what Ansible's apt module needs
LOCAL = ("fio", "python3-apt")
RECIPE_LABEL = "hostmax.recipe"
# nobody reads these in a container
LEFT_OUT = ("doc", "locale", "man")

# Tried in this order: a machine may forbid to raise limits, and may have cgroups that only runc knows.
MODEST = ["--ulimit=nofile=1024:1024", "--ulimit=nproc=4096:4096"]
WAYS = {"podman": ([], MODEST, ["--runtime=runc", *MODEST]), "docker": ([], MODEST)}

# Process 1 reaps what is left to it, as every init does: a zombie would look like a process left behind.
INIT = "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"
# Who may run commands in a container is root there already, so its users need neither password nor key.
SETUP = """
mkdir -p /run/sshd
ssh-keygen -A >/dev/null
useradd --create-home --skel /nonexistent --shell /bin/sh tester
passwd --delete root >/dev/null
passwd --delete tester >/dev/null
"""
# an engine keeps /proc/sys read-only; this opens what the container's own network namespace has, nothing of the machine
OPEN_NETWORK = "mount --bind /proc/sys/net /proc/sys/net && mount -o remount,bind,rw /proc/sys/net"
SSHD_OPTIONS = ("UsePAM=no", "PermitRootLogin=yes", "PermitEmptyPasswords=yes", "Subsystem=sftp internal-sftp")

ACTION_HELP = "check: is there an engine? open-network: let containers set their own network's sysctl keys"

BUILD_LIMIT_S = 900.0
SHORT_LIMIT_S = 60.0


class EngineError(Exception):
    """Why there are no test hosts; the message is one sentence for the developer."""


def run(argv: Sequence[str], limit_s: float = SHORT_LIMIT_S) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, its output captured; rc 124 where it took longer than limit_s."""
    try:
        return subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=limit_s
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(argv, 124, "", f"no end within {limit_s:g} s")


def must(what: str, argv: Sequence[str], limit_s: float = SHORT_LIMIT_S) -> str:
    """Run a command that has to succeed and return its stdout; `what` begins the sentence where it fails."""
    done = run(argv, limit_s)
    if done.returncode != 0:
        raise EngineError(f"{what}: {last_line(done)}")
    return done.stdout.strip()


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    """The last line a command wrote, which is the one that says why it failed."""
    lines = [line.strip() for line in (done.stdout + "\n" + done.stderr).splitlines() if line.strip()]
    return lines[-1] if lines else f"{done.args[0]} ended with {done.returncode}"


def find_engine() -> str:
    """The engine that HOSTMAX_CONTAINER_ENGINE names, or the first that answers."""
    wanted = os.environ.get("HOSTMAX_CONTAINER_ENGINE")
    if wanted and wanted not in ENGINES:
        raise EngineError(f"HOSTMAX_CONTAINER_ENGINE is {wanted!r}; it may be {' or '.join(ENGINES)}.")
    for engine in [wanted] if wanted else ENGINES:
        if shutil.which(engine) and run([engine, "ps", "--quiet"]).returncode == 0:
            return engine
    raise EngineError(f"{wanted} does not answer." if wanted else "neither podman nor docker answers.")


# -- image ------------------------------------------------------------------------------------------------------------


def recipe() -> str:
    """What the image is made from, as a short hash: an image of another recipe is not used."""
    files = [path.read_text() for path in sorted((HERE / "image").iterdir())]
    return hashlib.sha256(repr([files, SUITE, INSTALLED, LOCAL, LEFT_OUT]).encode()).hexdigest()[:12]


def ensure_image(engine: str) -> str:
    """The image that HOSTMAX_TEST_IMAGE names (Debian or Ubuntu with sshd and Python), or ours, made where missing."""
    own = os.environ.get("HOSTMAX_TEST_IMAGE")
    if own:
        return own
    label = f"{RECIPE_LABEL}={recipe()}"
    found = run([engine, "image", "inspect", "--format", f'{{{{index .Config.Labels "{RECIPE_LABEL}"}}}}', IMAGE])
    if found.returncode == 0 and found.stdout.strip() == recipe():
        return IMAGE
    built = build(engine, label)
    if built.returncode != 0:
        if not shutil.which("mmdebstrap"):
            raise EngineError(f"{engine} cannot build {IMAGE}, and mmdebstrap is not installed: {last_line(built)}")
        bootstrap(engine, label)
    # what had the tag before has lost its name; the label says that it is ours
    run([engine, "image", "prune", "--force", "--filter", f"label={RECIPE_LABEL}"])
    return IMAGE


def build(engine: str, label: str) -> subprocess.CompletedProcess[str]:
    """Make the image on top of a public one; fails soon where no registry can be reached."""
    values = {"SUITE": SUITE, "INSTALLED": " ".join(INSTALLED), "LOCAL": " ".join(LOCAL)}
    arguments = [f"--build-arg={name}={value}" for name, value in values.items()]
    image = HERE / "image"
    options = [f"--label={label}", f"--tag={IMAGE}", f"--file={image / 'Containerfile'}", *arguments]
    return run([engine, "build", *options, str(image)], BUILD_LIMIT_S)


def bootstrap(engine: str, label: str) -> None:
    """Make the image without a registry, from Debian's packages, through this machine's own apt settings."""
    outer_apt = 'APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" apt-get'
    hooks = [
        f"{outer_apt} clean",
        f"{outer_apt} install -y -qq --no-install-recommends --download-only {' '.join(LOCAL)}",
        'chroot "$1" sh -e -s <"$LOCAL_PACKAGES"',
    ]
    with tempfile.TemporaryDirectory(prefix="hostmax-image-") as work:
        tar = f"{work}/image.tar"
        must(
            "mmdebstrap cannot make the image",
            [
                *("env", f"LOCAL_PACKAGES={HERE / 'image' / 'local_packages'}"),
                *("mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(INSTALLED)}"),
                *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in LEFT_OUT),
                *(f"--aptopt={setting}" for setting in apt_settings()),
                *(f"--customize-hook={hook}" for hook in hooks),
                *(SUITE, tar, *apt_sources()),
            ],
            BUILD_LIMIT_S,
        )
        must(
            f"{engine} cannot import the image",
            [engine, "import", "--change", f"LABEL {label}", tar, IMAGE],
            BUILD_LIMIT_S,
        )


def apt_settings() -> list[str]:
    """How apt on this machine reaches its servers (proxies, certificates)."""
    if not shutil.which("apt-config"):
        return []
    return re.findall(r'^Acquire::https?::.* ".+";$', run(["apt-config", "dump"]).stdout, re.MULTILINE)


def apt_sources() -> list[str]:
    """Where apt on this machine has the image's Debian from, as mmdebstrap's mirrors; none: Debian's own."""
    if not shutil.which("apt-get"):
        return []
    line = "$(CODENAME) deb $(REPO_URI) $(RELEASE) $(COMPONENT)"
    listed = run(["apt-get", "indextargets", "--format", line, "Identifier: Packages", "Origin: Debian"]).stdout
    sources = dict.fromkeys(entry.split(" ", 1)[1] for entry in listed.splitlines() if entry.startswith(SUITE))
    return list(sources)


# -- containers -------------------------------------------------------------------------------------------------------


def checkout() -> str:
    """How the names of this checkout's containers begin."""
    return f"hostmax-{hashlib.sha256(str(HERE).encode()).hexdigest()[:8]}-"


def container(name: str) -> str:
    """What the engine calls a test host: hosts of two checkouts, or of two scenarios, never meet."""
    return f"{checkout()}{os.environ.get('MOLECULE_SCENARIO_NAME', 'default')}-{name}"


def create(engine: str, names: Sequence[str]) -> None:
    """Start a fresh container for each name, ready to be entered."""
    image = ensure_image(engine)
    remove(engine, [container(name) for name in names])
    network = [] if os.environ.get("HOSTMAX_TEST_IMAGE") else ["--network=none"]
    ways = list(WAYS[engine])
    for name in names:
        command = [*(f"--name={container(name)}", f"--hostname={name}"), *network, image, "sh", "-c", INIT]
        while (done := run([engine, "run", "--detach", *ways[0], *command])).returncode != 0:
            remove(engine, [container(name)])
            ways.pop(0)
            if not ways:
                raise EngineError(f"{engine} cannot start a container of {image}: {last_line(done)}")
        must(f"{name} cannot be set up", [engine, "exec", container(name), "sh", "-euc", SETUP])


def remove(engine: str, containers: Sequence[str]) -> None:
    """End and remove containers, by the engine's names; one that is not there is no fault."""
    for name in containers:
        run([engine, "kill", name])  # or `rm` waits whether the container ends by itself
        done = run([engine, "rm", "--force", "--volumes", name])
        if done.returncode != 0 and "no such" not in done.stderr.lower():
            raise EngineError(f"{engine} cannot remove {name}: {last_line(done)}")


def all_containers(engine: str) -> list[str]:
    """Every container of this checkout, of whichever scenario."""
    listed = must(f"{engine} cannot list its containers", [engine, "ps", "--all", "--format", "{{.Names}}"])
    return [name for name in listed.split() if name.startswith(checkout())]


def open_network_settings(engine: str, names: Sequence[str]) -> None:
    """Let containers set the sysctl keys of their own network namespace."""
    for name in names:
        must(
            f"the network settings of {name} cannot be opened",
            [engine, "exec", "--privileged", container(name), "sh", "-c", OPEN_NETWORK],
        )


def enter(engine: str, name: str) -> None:
    """Become an sshd in the container that speaks to one client, on standard input and output."""
    options = [f"-o{option}" for option in SSHD_OPTIONS]
    os.execvp(
        engine, [engine, "exec", "--interactive", container(name), "/usr/sbin/sshd", "-i", "-f", "/dev/null", *options]
    )


def main(argv: Sequence[str]) -> int:
    """Do one thing and return the exit code: 1 with a sentence on stderr where it cannot be done."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("action", choices=["check", "create", "enter", "open-network", "remove"], help=ACTION_HELP)
    parser.add_argument("names", nargs="*", help="test hosts; to remove none is to remove all of this checkout")
    asked = parser.parse_args(argv)
    try:
        engine = find_engine()
        if asked.action == "create":
            create(engine, asked.names)
        elif asked.action == "remove":
            remove(engine, [container(name) for name in asked.names] or all_containers(engine))
        elif asked.action == "open-network":
            open_network_settings(engine, asked.names)
        elif asked.action == "enter":
            enter(engine, *asked.names)
    except EngineError as exc:
        print(str(exc), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
