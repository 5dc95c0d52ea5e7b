from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NoReturn

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import signatures


def answer(monkeypatch: pytest.MonkeyPatch, code: int, out: str = "", err: str = "") -> None:
    monkeypatch.setattr(signatures.shutil, "which", lambda name, path: "/sbin/blkid")
    monkeypatch.setattr(signatures, "_run", lambda command: (code, out, err))


@pytest.fixture
def empty(tmp_path: Path) -> str:
    path = tmp_path / "device"
    path.write_bytes(bytes(1 << 20))
    return str(path)


def test_nothing_found_on_a_device_that_can_be_read_is_nothing(monkeypatch: pytest.MonkeyPatch, empty: str) -> None:
    answer(monkeypatch, 2)
    assert signatures.probe(empty) == ((), None)


def test_nothing_found_on_a_device_that_cannot_be_read_proves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answer(monkeypatch, 2)
    assert "it cannot be read" in (signatures.probe(str(tmp_path / "gone")).fault or "")


def test_a_message_proves_nothing_whatever_the_exit_code(monkeypatch: pytest.MonkeyPatch, empty: str) -> None:
    answer(monkeypatch, 2, err="blkid: error: /dev/sda: Operation not permitted\n")
    assert "Operation not permitted" in (signatures.probe(empty).fault or "")


def test_the_entry_of_a_partition_in_its_disk_is_not_a_signature(monkeypatch: pytest.MonkeyPatch, empty: str) -> None:
    answer(monkeypatch, 0, "DEVNAME=/dev/sda1\nPART_ENTRY_SCHEME=dos\nPART_ENTRY_TYPE=0x83\n")
    assert signatures.probe(empty) == ((), None)


def test_a_file_system_and_a_partition_table_are_both_named(monkeypatch: pytest.MonkeyPatch, empty: str) -> None:
    answer(monkeypatch, 0, "DEVNAME=/dev/sda\nLABEL=TYPE=x\nTYPE=ext4\nUSAGE=filesystem\nPTTYPE=gpt\n")
    assert signatures.probe(empty) == (("ext4", "gpt"), None)


def test_an_ambivalent_result_proves_nothing(monkeypatch: pytest.MonkeyPatch, empty: str) -> None:
    answer(monkeypatch, 8, err="ambivalent result")
    assert "contradict each other" in (signatures.probe(empty).fault or "")


@pytest.mark.parametrize("code", [1, 4, -9])
def test_any_other_end_of_blkid_proves_nothing(monkeypatch: pytest.MonkeyPatch, empty: str, code: int) -> None:
    answer(monkeypatch, code)
    assert f"blkid ended with {code}" in (signatures.probe(empty).fault or "")


def test_without_blkid_nothing_is_proved(monkeypatch: pytest.MonkeyPatch, empty: str) -> None:
    monkeypatch.setattr(signatures.shutil, "which", lambda name, path: None)
    assert "blkid is not installed" in (signatures.probe(empty).fault or "")


def test_a_device_that_does_not_answer_proves_nothing(monkeypatch: pytest.MonkeyPatch, empty: str) -> None:
    def hang(command: list[str]) -> NoReturn:
        raise subprocess.TimeoutExpired(command, 60)

    answer(monkeypatch, 0)
    monkeypatch.setattr(signatures, "_run", hang)
    assert "TimeoutExpired" in (signatures.probe(empty).fault or "")
