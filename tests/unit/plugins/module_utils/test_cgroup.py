"""Caps by cgroup v1 or v2, on trees of plain files that keep what is written to them."""

from __future__ import annotations

import os
import shutil

import pytest
from ansible_collections.hostmax.storage.plugins.module_utils import cgroup
from ansible_collections.hostmax.storage.plugins.module_utils.cgroup import V1, V2, CgroupError, Hierarchy
from ansible_collections.hostmax.storage.plugins.module_utils.journal import Journal

CAP = {"iops": 3000, "bytes_per_s": 24576000}
V1_FILES = [f"blkio.throttle.{way}_{what}_device" for way in ("read", "write") for what in ("iops", "bps")]


def mount_line(mount, kind, options):
    return f"38 31 0:35 / {mount} rw,relatime - {kind} cgroup {options}\n"


class Tree:
    """A fake cgroup hierarchy: a new group has its control files, and is gone with them."""

    def __init__(self, base, files):
        self.base, self.files = base, files
        base.mkdir()

    def add(self, name="", **contents):
        group = self.base / name if name else self.base
        group.mkdir(exist_ok=True)
        for file in self.files:
            (group / file).write_text("")
        for file, text in contents.items():
            (group / file.replace("__", ".")).write_text(text)
        return group


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """Give fake trees; os.mkdir and rmdir in them behave like the kernel's."""
    trees = []

    def make(name, files):
        tree = Tree(tmp_path / name, files)
        trees.append(tree)
        return tree

    def fake_mkdir(path, mode=0o777, real=os.mkdir):
        real(path, mode)
        for tree in trees:
            if os.path.dirname(path) == str(tree.base):
                tree.add(os.path.basename(path))

    def fake_rmdir(path):
        if os.path.exists(path) and cgroup.members(path):
            return OSError(16, "Device or resource busy")
        shutil.rmtree(path, ignore_errors=True)
        return None

    monkeypatch.setattr(cgroup.os, "mkdir", fake_mkdir)
    monkeypatch.setattr(cgroup, "_rmdir", fake_rmdir)
    monkeypatch.setattr(cgroup, "_EMPTY_WAIT_S", 0)
    return make


@pytest.fixture
def v2(kernel):
    tree = kernel("unified", ["io.max", "cgroup.procs"])
    tree.add(cgroup__controllers="cpu io memory\n", cgroup__subtree_control="")
    (tree.base / "io.max").unlink()
    return tree


@pytest.fixture
def v1(kernel):
    tree = kernel("blkio", [*V1_FILES, "cgroup.procs"])
    tree.add()
    return tree


@pytest.fixture
def book(tmp_path):
    os.makedirs(tmp_path / "run1")
    return Journal(str(tmp_path / "run1" / "journal.jsonl"))


def mountinfo(tmp_path, *lines):
    path = tmp_path / "mountinfo"
    path.write_text("".join(lines))
    return str(path)


def test_v2_with_the_io_controller_is_preferred(tmp_path, v1, v2):
    found = mountinfo(tmp_path, mount_line(v1.base, "cgroup", "rw,blkio"), mount_line(v2.base, "cgroup2", "rw"))
    assert cgroup.detect(found) == Hierarchy(V2, str(v2.base))


def test_a_hybrid_host_whose_v2_has_no_io_controller_caps_with_v1(tmp_path, v1, v2):
    (v2.base / "cgroup.controllers").write_text("hugetlb\n")
    found = mountinfo(tmp_path, mount_line(v2.base, "cgroup2", "rw"), mount_line(v1.base, "cgroup", "rw,blkio"))
    assert cgroup.detect(found) == Hierarchy(V1, str(v1.base))


def test_a_mount_point_with_a_blank_in_its_name_is_found(tmp_path, kernel):
    tree = kernel("block io", V1_FILES)
    tree.add()
    found = mountinfo(tmp_path, mount_line(str(tree.base).replace(" ", r"\040"), "cgroup", "rw,blkio"))
    assert cgroup.detect(found).mount == str(tree.base)


def test_a_blkio_hierarchy_without_throttling_cannot_cap(tmp_path, v1):
    for name in V1_FILES:
        (v1.base / name).unlink()
    with pytest.raises(CgroupError, match="This host cannot cap volumes"):
        cgroup.detect(mountinfo(tmp_path, mount_line(v1.base, "cgroup", "rw,blkio")))


def test_a_host_without_any_cgroup_says_so_in_one_sentence(tmp_path):
    with pytest.raises(CgroupError, match=r"^This host cannot cap volumes: .*; use [^.]*\.$"):
        cgroup.detect(mountinfo(tmp_path, "22 1 254:0 / / rw - ext4 /dev/vda rw\n"))


def test_a_read_only_hierarchy_as_in_a_container_says_so(tmp_path, v1, monkeypatch):
    monkeypatch.setattr(cgroup.os, "access", lambda path, mode: False)
    with pytest.raises(CgroupError, match="read-only for this user"):
        cgroup.detect(mountinfo(tmp_path, mount_line(v1.base, "cgroup", "rw,blkio")))


def test_v1_gets_one_line_in_each_of_its_four_files(v1, book):
    path = cgroup.create("run1", book, Hierarchy(V1, str(v1.base)))
    cgroup.limit(path, V1, "7:3", CAP)
    written = {name: (v1.base / "hostmax-run1" / name).read_text() for name in V1_FILES}
    assert written == {name: "7:3 3000" if "iops" in name else "7:3 24576000" for name in V1_FILES}


def test_v2_gets_one_line_with_both_directions(v2, book):
    path = cgroup.create("run1", book, Hierarchy(V2, str(v2.base)))
    cgroup.limit(path, V2, "7:3", CAP)
    assert (v2.base / "hostmax-run1/io.max").read_text() == "7:3 rbps=24576000 wbps=24576000 riops=3000 wiops=3000"


def test_what_the_cap_does_not_name_is_not_capped(v1, v2, book):
    path = cgroup.create("run1", book, Hierarchy(V2, str(v2.base)))
    cgroup.limit(path, V2, "7:3", {"iops": 3000, "bytes_per_s": None})
    assert (v2.base / "hostmax-run1/io.max").read_text() == "7:3 riops=3000 wiops=3000"
    path = cgroup.create("run1", book, Hierarchy(V1, str(v1.base)))
    cgroup.limit(path, V1, "7:3", {"iops": None, "bytes_per_s": 5})
    assert [(v1.base / "hostmax-run1" / name).read_text() for name in V1_FILES] == ["", "7:3 5", "", "7:3 5"]


def test_the_kernels_own_order_and_its_max_are_the_same_cap(v2, book, monkeypatch):
    path = cgroup.create("run1", book, Hierarchy(V2, str(v2.base)))
    shown = "7:2 rbps=1 wbps=1 riops=1 wiops=1\n7:3 rbps=max wbps=max riops=3000 wiops=3000\n"
    monkeypatch.setattr(cgroup, "_read", lambda name: shown)
    cgroup.limit(path, V2, "7:3", {"iops": 3000})


@pytest.mark.parametrize("shown", ["", "7:3 705032704\n", "7:31 3000\n"])
def test_a_cap_that_does_not_read_back_as_written_is_refused(v1, book, monkeypatch, shown):
    path = cgroup.create("run1", book, Hierarchy(V1, str(v1.base)))
    monkeypatch.setattr(cgroup, "_read", lambda name: shown)
    with pytest.raises(CgroupError, match="does not keep it"):
        cgroup.limit(path, V1, "7:3", {"iops": 3000})


@pytest.mark.parametrize(
    "cap", [{"iops": 0}, {"iops": -5}, {"iops": 2**32}, {"iops": True}, {"iops": "3000"}, {"bytes_per_s": 2**63}]
)
def test_a_cap_the_kernel_would_not_keep_is_refused_before_anything_is_made(cap):
    with pytest.raises(CgroupError, match="hostmax_thin_cap"):
        cgroup.check_cap(cap)


def test_joining_writes_the_process_into_the_group(v2, book):
    path = cgroup.create("run1", book, Hierarchy(V2, str(v2.base)))
    cgroup.join(path, 4711)
    assert cgroup.members(path) == [4711]


def test_the_io_controller_is_enabled_only_where_it_was_not_and_put_back(v2, book):
    control = v2.base / "cgroup.subtree_control"
    cgroup.create("run1", book, Hierarchy(V2, str(v2.base)))
    assert control.read_text() == "+io"
    control.write_text("io")
    assert book.restore(cgroup.HANDLERS)["left"] == []
    assert control.read_text() == "-io"
    assert not (v2.base / "hostmax-run1").exists()


def test_an_io_controller_that_was_enabled_before_is_not_touched(v2, book):
    control = v2.base / "cgroup.subtree_control"
    control.write_text("cpu io memory\n")
    cgroup.create("run1", book, Hierarchy(V2, str(v2.base)))
    assert [entry.kind for entry in book.entries()] == ["cgroup"]
    book.restore(cgroup.HANDLERS)
    assert control.read_text() == "cpu io memory\n"


def test_the_io_controller_stays_while_another_group_caps_by_it(v2, book):
    cgroup.create("run1", book, Hierarchy(V2, str(v2.base)))
    (v2.base / "cgroup.subtree_control").write_text("io")
    other = v2.add("hostmax-run2", io__max="7:9 rbps=max wbps=max riops=5 wiops=5\n")
    (left,) = book.restore(cgroup.HANDLERS)["left"]
    assert "hostmax-run2 has caps by it" in left["why"]
    assert (v2.base / "cgroup.subtree_control").read_text() == "io"
    shutil.rmtree(other)
    assert book.restore(cgroup.HANDLERS)["left"] == []


def test_an_io_controller_that_cannot_be_enabled_is_one_sentence_about_containers(v2, book, monkeypatch):
    def busy(path, text):
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(cgroup, "_write", busy)
    with pytest.raises(CgroupError, match="not in a container"):
        cgroup.create("run1", book, Hierarchy(V2, str(v2.base)))
    assert not (v2.base / "hostmax-run1").exists()


def test_a_group_with_processes_of_somebody_else_is_left(v1, book):
    path = cgroup.create("run1", book, Hierarchy(V1, str(v1.base)))
    cgroup.join(path, 1)
    (left,) = book.restore(cgroup.HANDLERS)["left"]
    assert "processes 1, which are not of this run" in left["why"]
    assert os.path.isdir(path)


def test_a_group_of_that_name_that_somebody_made_anew_is_left(v1, book, tmp_path):
    path = cgroup.create("run1", book, Hierarchy(V1, str(v1.base)))
    os.rename(path, tmp_path / "elsewhere")
    v1.add("hostmax-run1")
    (left,) = book.restore(cgroup.HANDLERS)["left"]
    assert "not the one this run made" in left["why"]


def test_after_a_reboot_there_is_nothing_to_put_back(v2, book):
    cgroup.create("run1", book, Hierarchy(V2, str(v2.base)))
    shutil.rmtree(v2.base)
    assert book.restore(cgroup.HANDLERS) == {"restored": [], "left": []}


def test_a_group_that_is_there_already_is_not_taken_over(v1, book):
    v1.add("hostmax-run1")
    with pytest.raises(CgroupError, match="restore the run run1 first"):
        cgroup.create("run1", book, Hierarchy(V1, str(v1.base)))
    assert book.entries() == []
