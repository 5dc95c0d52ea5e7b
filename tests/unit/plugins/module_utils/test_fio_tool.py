# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path
from typing import Any, Sequence

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import fio_tool
from ansible_collections.hostmax.storage.plugins.module_utils.fio_tool import (
    ToolError,
    choose_engine,
    find_fio,
    io_uring_usable,
    parse_version,
    read_engines,
    read_version,
    version_fault,
)

BOTH = ["psync", "io_uring", "libaio"]


def answering(out: str, rc: int = 0) -> fio_tool.Run:
    def run(argv: Sequence[str]) -> tuple[int, str, str]:
        return rc, out, ""

    return run


def usable(io_depth: int) -> tuple[bool, str | None]:
    return True, None


def unusable(io_depth: int) -> tuple[bool, str | None]:
    return False, "The kernel says no."


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("fio-3.33", (3, 33)),
        ("fio-3.28-dirty", (3, 28)),
        ("fio-3.36-123-gabcdef", (3, 36)),
        ("3.1\n", (3, 1)),
        ("fio-2.2.10", (2, 2, 10)),
        ("fio", None),
        ("", None),
    ],
)
def test_versions_as_fio_and_distributions_write_them(text: str, version: tuple[int, ...] | None) -> None:
    assert parse_version(text) == version


def test_an_old_fio_is_refused_with_both_versions_and_what_to_do() -> None:
    assert version_fault("3.1") == "The installed fio 3.1 is too old: install fio 3.19 or newer."
    assert "3.19" in str(version_fault(None))
    assert "3.19" in str(version_fault("unknown"))
    assert version_fault("3.19") is None
    assert version_fault("3.100") is None


def test_the_version_is_read_without_the_name_of_the_program() -> None:
    assert read_version("fio", answering("fio-3.33\n")) == "3.33"
    assert read_version("fio", answering("", 1)) is None


def test_engines_are_the_indented_lines() -> None:
    assert read_engines("fio", answering("Available IO engines:\n\tpsync\n\tio_uring\n\n")) == ["psync", "io_uring"]
    assert read_engines("fio", answering("\tpsync\n", 1)) == []


def test_auto_prefers_io_uring_and_falls_back_to_libaio_with_the_reason() -> None:
    assert choose_engine("auto", BOTH, 32, usable) == ("io_uring", None)
    assert choose_engine("auto", BOTH, 32, unusable) == ("libaio", "The kernel says no. libaio was used instead.")
    engine, note = choose_engine("auto", ["libaio"], 32, usable)
    assert engine == "libaio"
    assert "not in this fio" in str(note)


def test_the_probe_is_made_with_the_queue_depth_of_the_point() -> None:
    seen: list[int] = []
    choose_engine("auto", BOTH, 64, lambda io_depth: (bool(seen.append(io_depth)) or True, None))
    assert seen == [64]


def test_an_engine_asked_for_by_name_is_never_replaced() -> None:
    assert choose_engine("psync", BOTH, 1, unusable) == ("psync", None)
    for wanted in ("io_uring", "posixaio"):
        with pytest.raises(ToolError):
            choose_engine(wanted, BOTH, 32, unusable)
    with pytest.raises(ToolError, match="not in this fio either"):
        choose_engine("auto", ["psync"], 32, usable)


@pytest.mark.parametrize(
    ("code", "words"),
    [(errno.ENOSYS, "kernel does not have it"), (errno.EPERM, "not allowed"), (errno.ENOMEM, "ulimit -l")],
)
def test_each_refusal_of_the_kernel_has_its_reason(monkeypatch: pytest.MonkeyPatch, code: int, words: str) -> None:
    class Refusing:
        def syscall(self, *arguments: Any) -> int:
            ctypes.set_errno(code)
            return -1

    monkeypatch.setattr(fio_tool.ctypes, "CDLL", lambda *_args, **_kwargs: Refusing())
    ok, why = io_uring_usable(32)
    assert not ok
    assert words in str(why)
    assert "depth of 32" in str(why)


def test_the_probe_leaves_no_file_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    io_uring_usable(8)
    assert len(os.listdir("/proc/self/fd")) == before


def a_program(folder: Path) -> str:
    program = folder / "fio"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return str(program)


def test_fio_is_found_where_path_does_not_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fio_tool, "PLACES", (str(tmp_path),))
    monkeypatch.setenv("PATH", "/nowhere")
    assert find_fio() is None
    program = a_program(tmp_path)
    assert find_fio() == program


def test_an_empty_path_does_not_mean_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_program(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fio_tool, "PLACES", ())
    monkeypatch.setenv("PATH", "")
    assert find_fio() is None
