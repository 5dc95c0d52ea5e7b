"""Our line in fstab comes and goes; every other line stays as it was, byte for byte."""

from __future__ import annotations

import os
import stat

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import fstab, journal
from hypothesis import given
from hypothesis import strategies as st

LINE = fstab.line_for("run", "10.0.0.4:/vol1", "/mnt/vol1", "nfs", "vers=3,hard")


@pytest.fixture
def book(tmp_path):
    (tmp_path / "run").mkdir()
    return journal.Journal(str(tmp_path / "run" / "journal.jsonl"))


@pytest.fixture
def table(tmp_path):
    return tmp_path / "fstab"


def test_a_boot_goes_on_without_the_server_and_waits_for_the_network():
    assert LINE == "10.0.0.4:/vol1 /mnt/vol1 nfs vers=3,hard,nofail,_netdev,x-hostmax.run=run 0 0"


@pytest.mark.parametrize(
    "before",
    [
        "",
        "\n",
        "/dev/vda / ext4 rw 0 1\n",
        "/dev/vda / ext4 rw 0 1",
        "# a comment\n\n/dev/vda / ext4 rw 0 1 # ours: x-hostmax.run=run\n",
        "10.0.0.9:/x /mnt/x nfs noauto # four fields and a comment\n",
        "/dev/vda\t/ \text4 rw\r\n\xff\xfe\n\n\n",
    ],
)
def test_every_other_line_is_kept(book, table, before):
    table.write_bytes(before.encode("latin-1"))
    assert fstab.add(book, "/mnt/vol1", LINE, str(table))
    assert not fstab.add(book, "/mnt/vol1", LINE, str(table))
    assert table.read_bytes().startswith(before.encode("latin-1"))
    assert book.restore(fstab.HANDLERS)["restored"] == ["fstab line /mnt/vol1"]
    assert table.read_bytes() == before.encode("latin-1")
    assert book.restore(fstab.HANDLERS) == {"restored": [], "left": []}


@given(st.text(st.sampled_from("ab/ #\t\n\r\\")))
def test_any_table_is_put_back_byte_for_byte(tmp_path_factory, before):
    place = tmp_path_factory.mktemp("run")
    table = place / "fstab"
    table.write_bytes(before.encode())
    book = journal.Journal(str(place / "journal.jsonl"))
    fstab.add(book, "/mnt/vol1", fstab.line_for(book.run_id, "a:/b", "/mnt/vol1", "nfs", ""), str(table))
    book.restore(fstab.HANDLERS)
    assert table.read_bytes() == before.encode()


def test_a_changed_line_takes_the_place_of_the_old_one(book, table):
    table.write_text("/dev/vda / ext4 rw 0 1\n")
    fstab.add(book, "/mnt/vol1", LINE, str(table))
    other = fstab.line_for("run", "10.0.0.4:/vol1", "/mnt/vol1", "nfs", "vers=4.1")
    assert fstab.add(book, "/mnt/vol1", other, str(table))
    assert table.read_text() == f"/dev/vda / ext4 rw 0 1\n{other}\n"
    book.restore(fstab.HANDLERS)
    assert table.read_text() == "/dev/vda / ext4 rw 0 1\n"


def test_what_others_wrote_meanwhile_stays(book, table):
    table.write_text("a / ext4\n")
    fstab.add(book, "/mnt/vol1", LINE, str(table))
    table.write_text("# new\n" + table.read_text() + "b /b ext4\n")
    book.restore(fstab.HANDLERS)
    assert table.read_text() == "# new\na / ext4\nb /b ext4\n"


def test_a_line_that_somebody_removed_is_nothing_to_do(book, table):
    table.write_text("a / ext4\n")
    fstab.add(book, "/mnt/vol1", LINE, str(table))
    table.write_text("a / ext4\n")
    assert book.restore(fstab.HANDLERS) == {"restored": [], "left": []}


def test_a_line_of_somebody_else_for_the_same_path_is_refused(book, table):
    table.write_text("# x\n10.0.0.9:/v /mnt/vol1/ nfs\n")
    with pytest.raises(fstab.FstabError, match=r"has a line for /mnt/vol1 already \(line 2\)"):
        fstab.add(book, "/mnt/vol1", LINE, str(table))


def test_the_file_keeps_its_mode_and_stays_behind_its_link(book, tmp_path, table):
    real = tmp_path / "real"
    real.write_text("a / ext4\n")
    real.chmod(0o640)
    table.symlink_to(real)
    fstab.add(book, "/mnt/vol1", LINE, str(table))
    assert table.is_symlink()
    assert stat.S_IMODE(os.stat(real).st_mode) == 0o640
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".fstab")] == []


def test_a_path_with_a_blank_is_escaped_and_found_again(book, table):
    table.write_text("")
    line = fstab.line_for("run", "10.0.0.4:/a b", "/mnt/a b", "nfs", "")
    fstab.add(book, "/mnt/a b", line, str(table))
    assert table.read_text().split()[1] == "/mnt/a\\040b"
    assert fstab.ours("run", "/mnt/a b", str(table)) == line
