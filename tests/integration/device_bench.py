"""Devices to judge: loop devices over sparse files, with all that may be on them, undone in reverse order."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import struct
import subprocess
import zlib
from pathlib import Path
from typing import Any, Iterator

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import guard

SIZE_BYTES = 64 << 20

NEEDS_ROOT = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root for loop devices"),
    pytest.mark.skipif(not os.path.exists("/dev/loop-control"), reason="this kernel has no loop devices"),
]


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout.strip()


def need(*tools: str) -> None:
    for tool in tools:
        if shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin") is None:
            pytest.skip(f"{tool} is not installed")


class Bench:
    """Makes devices and undoes everything in reverse order, also after a failure."""

    def __init__(self, directory: Path, undo: contextlib.ExitStack) -> None:
        self.directory, self.undo, self._count = directory, undo, 0

    def image(self, size_bytes: int = SIZE_BYTES) -> str:
        self._count += 1
        path = self.directory / f"volume{self._count}.img"
        with open(path, "wb") as file:
            file.truncate(size_bytes)
        return str(path)

    def loop(self, image: str | None = None, *options: str) -> str:
        image = image or self.image()
        device = run("losetup", "-f", "--show", *options, image)

        def detach() -> None:
            backing = Path(f"/sys/block/{os.path.basename(device)}/loop/backing_file")
            if backing.exists() and backing.read_text().startswith(image):
                run("losetup", "-d", device)

        self.undo.callback(detach)
        return device

    def mount(self, device: str) -> str:
        self._count += 1
        point = self.directory / f"mount {self._count}"
        point.mkdir()
        run("mount", "-o", "ro", device, str(point))  # read-only, so that the file system itself changes no byte
        self.undo.callback(subprocess.run, ["umount", str(point)], check=False)
        return str(point)

    def mounted(self) -> tuple[str, str]:
        device = self.loop()
        make_ext4(device)
        return device, self.mount(device)

    def process(self, *command: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)

        def end() -> None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            assert process.stdout is not None
            process.stdout.close()

        self.undo.callback(end)
        return process


def made_bench(tmp_path: Path) -> Iterator[Bench]:
    """The fixture `bench` of the test files."""
    with contextlib.ExitStack() as undo:
        yield Bench(tmp_path, undo)


def make_ext4(device: str) -> None:
    need("mkfs.ext4")
    run("mkfs.ext4", "-q", "-F", device)


def volume(path: str, **more: Any) -> dict[str, Any]:
    return {"name": "data", "path": path, "kind": "block", **more}


def judge(*volumes: dict[str, Any], writes: bool = True, **more: Any) -> list[dict[str, Any]]:
    named = [{**one, "name": f"data{number}"} if len(volumes) > 1 else one for number, one in enumerate(volumes)]
    return guard.judge_volumes(named, writes, **more)


def refused(path: str, **more: Any) -> str:
    """All reasons why the volume may not be written; its bytes are the same after the judgement and a failed claim."""
    before = digest(path)
    sentences = judge(volume(path, **more))[0]["refusals"]
    assert digest(path) == before
    assert sentences, "not refused"
    assert all(path in sentence and "volume data" in sentence and "\n" not in sentence for sentence in sentences)
    return " ".join(sentences)


def digest(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest() if os.path.exists(path) else "nothing there"


def write_at(device: str, offset_bytes: int, content: bytes) -> None:
    with open(device, "r+b") as file:
        file.seek(offset_bytes)
        file.write(content)


def dos_table() -> bytes:
    """A partition table with one partition of 16 MiB."""
    entry = struct.pack("<B3sB3sII", 0, b"\0\2\0", 0x83, b"\xff\xff\xff", 2048, 32768)
    return bytes(446) + entry + bytes(48) + b"\x55\xaa"


def gpt(device: str) -> None:
    """A protective MBR, the header and one partition, as any partitioning tool writes them."""
    sectors = SIZE_BYTES // 512
    entry = struct.pack("<16s16sQQQ72s", b"\xaf\x3d\xc6\x0f\x83\x84\x72\x47" * 2, b"p" * 16, 2048, 34815, 0, b"")
    entries = entry.ljust(128 * 128, b"\0")

    def header(crc: int) -> bytes:
        fields = (b"EFI PART", 0x10000, 92, crc, 0, 1, sectors - 1, 34, sectors - 34, b"d" * 16, 2, 128, 128)
        return struct.pack("<8sIIIIQQQQ16sQIII", *fields, zlib.crc32(entries))

    protective = struct.pack("<B3sB3sII", 0, b"\0\2\0", 0xEE, b"\xff\xff\xff", 1, sectors - 1)
    write_at(device, 0, bytes(446) + protective + bytes(48) + b"\x55\xaa")
    write_at(device, 512, header(zlib.crc32(header(0))))
    write_at(device, 1024, entries)
