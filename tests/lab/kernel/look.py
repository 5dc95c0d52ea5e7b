"""Runs on a guest: prints what a run left there, a line each. One program: each costs an emulated processor much."""

import glob
import os
import sys

PLACES = ("/var/lib/hostmax", "/root/.ansible/tmp/*", "/root/.ansible_async/*", "/tmp/*")
SETTINGS = ("sysctl.d", "modprobe.d", "modules-load.d", "udev/rules.d", "systemd/system", "tmpfiles.d")


def read(path):
    try:
        with open(path, "rb") as handle:
            return handle.read()
    except OSError:
        return b""


def below(path):
    yield path
    for directory, names, files in os.walk(path):
        for name in names + files:
            yield os.path.join(directory, name)


def found(run_id):
    mark = ("HOSTMAX_RUN=" + run_id).encode()
    for path in glob.glob("/proc/[0-9]*"):
        if mark in read(path + "/environ").split(b"\0") or read(path + "/comm") == b"hostmax-agent\n":
            yield "process " + os.path.basename(path)
    for line in read("/proc/self/mounts").decode().splitlines():
        if "hostmax" in line:
            yield "mount " + " ".join(line.split()[:2])
    for path in glob.glob("/sys/block/loop*/loop/backing_file"):
        yield "/dev/" + path.split("/")[3]
    for pattern in PLACES:
        for path in glob.glob(pattern):
            yield from below(path)
    for directory in SETTINGS:
        yield from glob.glob(f"/etc/{directory}/*hostmax*")
    for line in read("/etc/fstab").decode().splitlines():
        if "hostmax" in line:
            yield "/etc/fstab: " + line
    yield from glob.glob("/export/*/hostmax-*")
    yield from glob.glob("/mnt/*hostmax*")


for what in sorted(set(found(sys.argv[1]))):
    print(what)
