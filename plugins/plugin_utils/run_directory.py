# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A run's directory on the controller: its name, its files, written whole or not at all, and read back with care.

It must not know what plans, samples and results mean.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import json
import os
import re
import secrets
import shutil
import urllib.parse
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from ansible_collections.hostmax.storage.plugins.module_utils.sample_pack import unpack_sample
from ansible_collections.hostmax.storage.plugins.plugin_utils.sample_index import SampleIndex

Json = dict[str, Any]
Samples = dict[str, dict[str, Json]]

PLAN_SCHEMA = "hostmax.plan/1"
PLAN_KEYS = ("run_id", "playbook", "created_utc", "command", "seed", "settings", "planned_s", "hosts", "points")
LEAST_FREE_BYTES = 50 * 1024 * 1024
LATEST = "latest"
_LONGEST_FILE_NAME = 200


class RunDirectoryError(Exception):
    """A run directory that cannot be made or read; the message is one sentence for the user."""


def new_run_id(playbook: str, now: datetime.datetime) -> str:
    """`host_max-20261130T194000Z-a1b2c3`: what ran, when (UTC), and a part no other run has."""
    stem = re.sub(r"[^A-Za-z0-9_.-]", "_", playbook) or "run"
    return f"{stem}-{now.astimezone(datetime.UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


def safe_file_name(name: str) -> str:
    """A host's name as a file name: unlike names stay unlike, and none is hidden or leaves the directory."""
    quoted = urllib.parse.quote(name, safe="")
    if quoted.startswith("."):
        quoted = "%2E" + quoted[1:]
    if len(quoted) > _LONGEST_FILE_NAME:
        raise RunDirectoryError(f"the host name {name[:40]}… is too long for a file; give the host a shorter alias.")
    return quoted


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file so that a reader, or a crash, sees all of it or what was there before."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(path)
    except OSError as error:
        raise RunDirectoryError(f"{path} cannot be written: {error.strerror}.") from error
    finally:
        temporary.unlink(missing_ok=True)


def write_json_atomic(path: Path, document: Any) -> None:
    """Write a JSON file, all of it or nothing."""
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_atomic(path, text.encode("utf-8", "surrogateescape"))


def check_results(results: str) -> Path:
    """The results directory, absolute, after making sure that a run directory can be made in it; makes nothing."""
    where = Path(results).expanduser().absolute()
    there = next(path for path in (where, *where.parents) if path.exists() or path.is_symlink())
    if not there.is_dir():
        raise RunDirectoryError(f"hostmax_results {where}: {there} is not a directory; name another one.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise RunDirectoryError(f"hostmax_results {where}: {there} is not writable; name another directory.")
    free = shutil.disk_usage(there).free
    if free < LEAST_FREE_BYTES:
        raise RunDirectoryError(
            f"hostmax_results {where}: only {free // 1024**2} MiB are free and a run needs"
            f" {LEAST_FREE_BYTES // 1024**2} MiB; make room or name another directory."
        )
    return where


def create_run(results: str, run_id: str, plan: Json) -> RunDirectory:
    """Make the directory of a new run with its plan; `latest` points at it once it measures (`make_latest`)."""
    root = check_results(results)
    path = root / run_id
    try:
        root.mkdir(parents=True, exist_ok=True)
        path.mkdir()
        (path / "hosts").mkdir()
        write_json_atomic(path / "plan.json", plan)
    except FileExistsError as error:
        raise RunDirectoryError(f"{path} exists already; a run directory is never used twice, start again.") from error
    except OSError as error:
        raise RunDirectoryError(f"hostmax_results {root}: {error.strerror}; name another directory.") from error
    return RunDirectory(path)


def open_run(path: str | Path) -> RunDirectory:
    """A run directory that is there and has a readable plan; `results/latest` is followed."""
    where = Path(path).expanduser().absolute()
    if not where.exists():
        raise RunDirectoryError(f"the run directory {where} does not exist; name one below hostmax_results.")
    if not where.is_dir():
        raise RunDirectoryError(f"{where} is not a directory; name a run directory below hostmax_results.")
    run = RunDirectory(where.resolve())
    run.plan  # noqa: B018 - read now, so that its faults are told here
    return run


class RunDirectory:
    """The files of one run. Every host writes files of its own; samples.jsonl is shared and locked."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def run_id(self) -> str:
        """The run's id, as its plan says."""
        return str(self.plan["run_id"])

    @cached_property
    def plan(self) -> Json:
        """plan.json, checked for being one of ours and whole."""
        path = self.path / "plan.json"
        if not path.is_file():
            raise RunDirectoryError(
                f"{self.path} is not a run directory, it has no plan.json; name one below hostmax_results."
            )
        document = _read_json(path)
        schema = document.get("schema")
        if schema != PLAN_SCHEMA:
            raise RunDirectoryError(f"{path} has the schema {schema!r}, this version reads {PLAN_SCHEMA!r}.")
        missing = [key for key in PLAN_KEYS if key not in document]
        if missing:
            raise RunDirectoryError(f"{path} lacks {', '.join(missing)}; it was damaged, make another run.")
        return document

    def make_latest(self) -> None:
        """Point `latest` at this run, which begins now: one that was refused before is not what anybody looks for."""
        root = self.path.parent
        # a convenience: a file system without links, or a directory of that name, must not stop a run
        with contextlib.suppress(OSError):
            link = root / f".{LATEST}.{os.getpid()}"
            link.unlink(missing_ok=True)
            link.symlink_to(self.path.name)
            try:
                link.replace(root / LATEST)
            except OSError:
                link.unlink()

    def host_path(self, host: str) -> Path:
        """The directory of one host."""
        return self.path / "hosts" / safe_file_name(host)

    def write_facts(self, host: str, facts: Json) -> None:
        """Keep what is known of a host."""
        self._write(host, "facts.json", facts)

    def read_facts(self, host: str) -> Json | None:
        """What is known of a host, or None where it was never reached."""
        return self._read(host, "facts.json")

    def write_journal(self, host: str, journal: Json) -> None:
        """Keep a copy of a host's journal: what was changed on it before the first point."""
        self._write(host, "journal.json", journal)

    def write_status(self, host: str, status: str, reason: str | None) -> None:
        """Keep how a host fared: ok, failed, unreachable or late."""
        self._write(host, "status.json", {"status": status, "reason": reason})

    def read_status(self, host: str) -> tuple[str | None, str | None]:
        """How a host fared and why, or (None, None)."""
        found = self._read(host, "status.json") or {}
        return found.get("status"), found.get("reason")

    def write_round(self, told: Json) -> None:
        """Keep the round that hosts are being told: its number, attempt, T0 and points."""
        write_json_atomic(self.path / "round.json", told)

    def read_round(self) -> Json | None:
        """The round that was told last, or None."""
        path = self.path / "round.json"
        return _read_json(path) if path.is_file() else None

    def write_start(self, host: str, start: Json) -> None:
        """Keep when a host was told which round, and by how much it was late at each point of it."""
        self._write(host, "start.json", start)

    def read_start(self, host: str) -> Json | None:
        """When a host was told which round, and by how much it was late, or None."""
        return self._read(host, "start.json")

    def write_stage(self, host: str, stage: int, switched: Json) -> None:
        """Keep what was in effect on a host in a stage: {mounts, tuning} as its modules returned them."""
        self._write(host, "stages.json", {**self.read_stages(host), str(stage): switched})

    def read_stages(self, host: str) -> Json:
        """{stage: what was in effect} of a host."""
        return self._read(host, "stages.json") or {}

    def write_repeats(self, repeats: Json) -> None:
        """Keep which points are measured again, too: {point: {host: seconds it was late}} of the first time."""
        write_json_atomic(self.path / "repeats.json", {**self.read_repeats(), **repeats})

    def read_repeats(self) -> Json:
        """Which points were measured again, and which hosts had been late by how many seconds."""
        path = self.path / "repeats.json"
        return _read_json(path) if path.is_file() else {}

    def add_sample(self, host: str, sample: Json, raw: bytes | None = None) -> None:
        """Keep a host's sample of a point (sample["point"]) and fio's own output, gz."""
        if raw is not None:
            write_atomic(self.host_path(host) / f"{safe_file_name(sample['point'])}.json.gz", raw)
        append_line(self.path / "samples.jsonl", json.dumps({"host": host, **sample}, separators=(",", ":")))

    def sample_index(self) -> SampleIndex:
        """Where the samples stand, read in one pass; its `faults` has a sentence for every line that was left out."""
        return SampleIndex(self.path / "samples.jsonl")

    def iter_samples(self, point_id: str) -> Iterator[tuple[str, Json]]:
        """(host, sample) of a point, one at a time: the last of each host, unpacked."""
        for host, packed in self.sample_index().of(point_id).items():
            yield host, unpack_sample(packed)

    def read_samples(self) -> tuple[Samples, list[str]]:
        """{point id: {host: sample}}, all at once, and a sentence for every line that could not be read.

        For runs of a few hosts; `sample_index` reads any number of them.
        """
        index = self.sample_index()
        samples = {
            point: {host: unpack_sample(packed) for host, packed in index.of(point).items()} for point in index.points()
        }
        return samples, index.faults

    def rewrite_plan(self, plan: Json) -> None:
        """Another plan for a run that has not begun: what was taken over for the first one is gone."""
        for name in ("samples.jsonl", "notes.json", "repeats.json"):
            (self.path / name).unlink(missing_ok=True)
        for raw in (self.path / "hosts").glob("*/*.json.gz"):
            raw.unlink()
        write_json_atomic(self.path / "plan.json", plan)
        self.__dict__.pop("plan", None)

    def write_notes(self, sentences: list[str]) -> None:
        """Add what a reader of the results must know besides the figures; a sentence is kept once."""
        document = {"notes": list(dict.fromkeys(self.read_notes() + sentences))}
        write_json_atomic(self.path / "notes.json", document)

    def read_notes(self) -> list[str]:
        """The sentences of `write_notes`."""
        path = self.path / "notes.json"
        return [str(note) for note in _read_json(path).get("notes", [])] if path.is_file() else []

    def read_results(self) -> Json:
        """results.json."""
        path = self.path / "results.json"
        if not path.is_file():
            raise RunDirectoryError(f"{self.path} has no results.json; make its report first.")
        return _read_json(path)

    def _write(self, host: str, name: str, document: Json) -> None:
        write_json_atomic(self.host_path(host) / name, document)

    def _read(self, host: str, name: str) -> Json | None:
        path = self.host_path(host) / name
        return _read_json(path) if path.is_file() else None


def append_line(path: Path, line: str) -> None:
    """Append one line in one write, under a lock; a line that a crash cut off before stays a line of its own."""
    try:
        with path.open("ab+", buffering=0) as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            end = handle.seek(0, os.SEEK_END)
            handle.seek(max(0, end - 1))
            prefix = b"\n" if end and handle.read(1) != b"\n" else b""
            data = prefix + line.encode("utf-8", "surrogateescape") + b"\n"
            if handle.write(data) != len(data):
                raise RunDirectoryError(f"{path} cannot be written whole; is its file system full?")
    except OSError as error:
        raise RunDirectoryError(f"{path} cannot be written: {error.strerror}.") from error


def _read_json(path: Path) -> Json:
    try:
        document = json.loads(path.read_text(encoding="utf-8", errors="surrogateescape"))
    except OSError as error:
        raise RunDirectoryError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise RunDirectoryError(f"{path} is cut off or damaged, it is no whole JSON document.") from error
    if not isinstance(document, dict):
        raise RunDirectoryError(f"{path} is not a JSON object, it is none of our files.")
    return document
