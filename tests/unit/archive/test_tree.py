"""Directory trees as artifacts: what is listed, what is passed over, what is never followed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from wheelslim.archive.artifact import Member, MemberType
from wheelslim.archive.tree import TreeArtifact
from wheelslim.errors import ArchiveError, StorageError

if TYPE_CHECKING:
    from pathlib import Path


def everything(_member: Member, _head: bytes) -> bool:
    return True


def contents(tree: TreeArtifact) -> dict[str, bytes | None]:
    return {
        member.name: None if source is None else source.read(0, source.size)
        for member, source in tree.walk(everything)
    }


def test_files_come_in_order_with_their_bytes(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two").write_bytes(b"22")
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "c").write_bytes(b"")
    tree = TreeArtifact(tmp_path)
    assert list(contents(tree).items()) == [("a", b"1"), ("b/", None), ("b/two", b"22"), ("c", b"")]
    assert tree.size == 3
    assert tree.problems == []


def test_wants_sees_the_head_and_decides(tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(bytes(range(200)))
    (tmp_path / "short").write_bytes(b"x")
    seen: dict[str, bytes] = {}

    def wants(member: Member, head: bytes) -> bool:
        seen[member.name] = head
        return member.name == "short"

    given = {member.name: source is not None for member, source in TreeArtifact(tmp_path).walk(wants)}
    assert seen == {"long": bytes(range(64)), "short": b"x"}
    assert given == {"long": False, "short": True}


def test_links_are_members_and_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").write_bytes(b"file")
    (root / "to_file").symlink_to("file")
    (root / "to_outside").symlink_to(outside)
    (root / "loop").symlink_to(".")
    tree = TreeArtifact(root)
    assert contents(tree) == {"file": b"file", "loop": None, "to_file": None, "to_outside": None}
    links = {member.name: member.link_target for member in tree.members if member.type is MemberType.SYMLINK}
    assert links == {"loop": ".", "to_file": "file", "to_outside": str(outside)}
    assert tree.size == 4


def test_a_broken_link_is_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    (tmp_path / "broken").symlink_to("nowhere")
    (tmp_path / "file").write_bytes(b"file")
    tree = TreeArtifact(tmp_path)
    assert contents(tree)["file"] == b"file"
    assert tree.problems == ["broken: the link leads nowhere (to nowhere)"]


def test_hard_links_count_once(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"data")
    os.link(tmp_path / "one", tmp_path / "two")
    tree = TreeArtifact(tmp_path)
    assert tree.size == 4
    assert [(m.name, m.type, m.link_target) for m in tree.members] == [
        ("one", MemberType.FILE, None),
        ("two", MemberType.HARDLINK, "one"),
    ]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    (tmp_path / "closed").write_bytes(b"closed")
    (tmp_path / "closed").chmod(0)
    (tmp_path / "open").write_bytes(b"open")
    tree = TreeArtifact(tmp_path)
    assert contents(tree) == {"closed": None, "open": b"open"}
    assert len(tree.problems) == 1
    assert tree.problems[0].startswith("closed: passed over")


def test_a_file_that_goes_away_is_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    (tmp_path / "gone").write_bytes(b"gone")
    (tmp_path / "here").write_bytes(b"here")
    tree = TreeArtifact(tmp_path)
    (tmp_path / "gone").unlink()
    assert contents(tree) == {"gone": None, "here": b"here"}
    assert tree.problems == ["gone: passed over, no such file or directory"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    tree = TreeArtifact(tmp_path)
    assert contents(tree) == {}
    assert len(tree.problems) == 1


def test_read_gives_files_of_the_tree_only(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").write_bytes(b"file")
    (tmp_path / "outside").write_bytes(b"outside")
    tree = TreeArtifact(root)
    assert tree.read("file") == b"file"
    for name in ("../outside", "absent", ""):
        with pytest.raises(ArchiveError):
            tree.read(name)


def test_a_missing_directory_is_an_error_of_storage(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no such file"):
        TreeArtifact(tmp_path / "absent")


def test_whole_directories_are_passed_over_on_request(tmp_path: Path) -> None:
    for name in ("kept/file", "cache/CACHEDIR.TAG", "cache/deep/file", "kept/cache/file"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    os.link(tmp_path / "cache/deep/file", tmp_path / "kept/link")
    tree = TreeArtifact(tmp_path, lambda _name, names: "CACHEDIR.TAG" in names)
    assert [member.name for member in tree.members] == [
        "kept/",
        "kept/cache/",
        "kept/cache/file",
        "kept/file",
        "kept/link",
    ]
    assert tree.members[-1].type is MemberType.FILE
    assert tree.unreadable == {}
