"""Packages in, packages out: what changes, what stays, read back with tarfile, zipfile and zstandard."""

from __future__ import annotations

import bz2
import hashlib
import json
import tarfile
import zipfile
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from builders.conda import (
    CondaPackage,
    Item,
    contents_of,
    directory,
    hardlink,
    members_of,
    symlink,
    tar,
    tars_of,
    write_conda,
)
from unit.archive.conda_rewriters import Cutter, cut_out, library
from wheelslim.archive.artifact import ArtifactKind
from wheelslim.archive.conda import CondaArtifact
from wheelslim.archive.conda_rewrite import CondaOptions, conda_output_name, rewrite_conda
from wheelslim.errors import ArchiveError, StorageError, UsageError, VerifyError
from wheelslim.pieces import Data

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from wheelslim.pieces import Piece
    from wheelslim.rewriter import Rewriter, RewriteResult
    from wheelslim.source import Source

KINDS = [".conda", ".tar.bz2"]
SITE = "lib/python3.11/site-packages"
LONG = "share/" + "very-" * 30 + "long/" + "name-" * 30 + "ü.txt"
LIBRARY = library(b"one", b"two", b"three")
FAST = CondaOptions(compression_level=3, jobs=1)


def rewrite(
    path: Path, folder: Path, rewriter: Rewriter | None = None, options: CondaOptions = FAST
) -> tuple[Path, RewriteResult]:
    out = folder / "out.tmp"
    out.touch()
    with CondaArtifact(path) as artifact:
        result = rewrite_conda(artifact, out, rewriter or Cutter(), options)
        name = conda_output_name(artifact, options.build_suffix, options.format)
    final = folder / "out" / name
    final.parent.mkdir(exist_ok=True)
    return out.rename(final), result


def rich_package(info: Mapping[str, bytes] | None = None) -> CondaPackage:
    return CondaPackage(
        [
            Item(f"{SITE}/demo-1.0.dist-info/RECORD", record()),
            directory("lib"),
            Item("bin/run", b"#!/bin/sh\n", mode=0o755, owner=(1000, "wheel", 1001, "slim")),
            Item("lib/libdemo.so.1.2", LIBRARY, mode=0o755, mtime=1_600_000_001.25, pax={"comment": "kept"}),
            symlink("lib/libdemo.so", "libdemo.so.1.2"),
            hardlink("lib/libhard.so", "lib/libdemo.so.1.2"),
            symlink("lib64", "lib"),
            Item(f"{SITE}/demo/_C.so", library(b"a", b"b")),
            Item(LONG, b"long name", pax={"SCHILY.xattr.user.note": "x"}),
            Item("share/gnu-" + "long-" * 40, b"gnu", format=tarfile.GNU_FORMAT, mtime=1),
            Item(
                "share/plain.txt",
                b"text with /opt/build_placehold",
                placeholder="/opt/build_placehold",
                file_mode="text",
            ),
            Item(
                "lib/libprefix.so",
                library(b"/opt/build_placehold/x\0", b"y"),
                placeholder="/opt/build_placehold",
            ),
            Item("lib/nothing.so", library(b"nothing to cut")),
            Item("share/empty", b""),
        ],
        info=info or {},
    )


def record() -> bytes:
    return (
        f"../../libdemo.so.1.2,{record_hash(LIBRARY)},{len(LIBRARY)}\r\n"
        f"demo/_C.so,sha256=c3RhbGU,1\r\n"
        f"demo/__init__.py,,\r\n"
        f'"demo-1.0.dist-info/RECORD",,\r\n'
    ).encode()


def record_hash(data: bytes) -> str:
    import base64

    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


@pytest.mark.parametrize("kind", KINDS)
def test_libraries_are_rewritten_and_all_else_is_kept(tmp_path: Path, kind: str) -> None:
    path = rich_package().write(tmp_path, kind)
    original = path.read_bytes()
    out, result = rewrite(path, tmp_path)
    before, after = contents_of(path), contents_of(out)
    wanted = {
        name: cut_out(data) if name.startswith("lib/") and ".so" in name else data
        for name, data in before.items()
    }
    wanted[f"{SITE}/demo/_C.so"] = cut_out(before[f"{SITE}/demo/_C.so"])
    changing = {"info/paths.json", "info/wheelslim.json", f"{SITE}/demo-1.0.dist-info/RECORD"}
    assert after.keys() == before.keys() | {"info/wheelslim.json"}
    assert {name for name in wanted if after[name] != wanted[name]} <= changing
    assert [change.name for change in result.changed] == [
        "lib/libdemo.so.1.2", f"{SITE}/demo/_C.so", "lib/libprefix.so",
    ]  # fmt: skip
    assert path.read_bytes() == original


@pytest.mark.parametrize("kind", KINDS)
def test_tar_facts_are_kept(tmp_path: Path, kind: str) -> None:
    path = rich_package().write(tmp_path, kind)
    out, _ = rewrite(path, tmp_path)
    for name, members in members_of(path).items():
        rewritten = [member for member in members_of(out)[name] if member.name != "info/wheelslim.json"]
        assert [facts(member) for member in rewritten] == [facts(member) for member in members]


def facts(member: tarfile.TarInfo) -> Mapping[str, object]:
    found = {key: value for key, value in member.get_info().items() if key not in ("size", "chksum")}
    return found | {"pax": {key: value for key, value in member.pax_headers.items() if key != "size"}}


@pytest.mark.parametrize("kind", KINDS)
def test_unchanged_members_keep_their_header_blocks_to_the_byte(tmp_path: Path, kind: str) -> None:
    path = rich_package().write(tmp_path, kind)
    out, _ = rewrite(path, tmp_path)
    for name, data in tars_of(path).items():
        new = tars_of(out)[name]
        for item in ("share/empty", LONG, "bin/run", "lib64", "lib/libhard.so"):
            for old_member, new_member in zip(named(path, name, item), named(out, name, item), strict=True):
                old_raw = data[old_member.offset : old_member.offset_data]
                assert new[new_member.offset : new_member.offset_data] == old_raw


def named(path: Path, tar_name: str, item: str) -> list[tarfile.TarInfo]:
    return [member for member in members_of(path)[tar_name] if member.name == item]


@pytest.mark.parametrize("kind", KINDS)
def test_paths_json_is_true_and_otherwise_untouched(tmp_path: Path, kind: str) -> None:
    path = rich_package().write(tmp_path, kind)
    out, _ = rewrite(path, tmp_path)
    contents = contents_of(out)
    before = json.loads(contents_of(path)["info/paths.json"])
    after = json.loads(contents["info/paths.json"])
    links = {"lib/libdemo.so": "lib/libdemo.so.1.2"}
    for old, new in zip(before["paths"], after["paths"], strict=True):
        assert {**old, "sha256": 0, "size_in_bytes": 0} == {**new, "sha256": 0, "size_in_bytes": 0}
        data = contents.get(links.get(new["_path"], new["_path"]), b"")
        assert new["sha256"] == hashlib.sha256(data).hexdigest()
        assert new["size_in_bytes"] == len(data)
    # Python wrote the original with the same arguments: the style is kept.
    assert contents["info/paths.json"] == json.dumps(after, indent=2, sort_keys=True).encode()


def test_record_rows_of_changed_files_are_true_and_others_keep_their_bytes(tmp_path: Path) -> None:
    out, _ = rewrite(rich_package().write(tmp_path), tmp_path)
    rows = contents_of(out)[f"{SITE}/demo-1.0.dist-info/RECORD"].decode().split("\r\n")
    demo, module = cut_out(LIBRARY), cut_out(library(b"a", b"b"))
    assert rows == [
        f"../../libdemo.so.1.2,{record_hash(demo)},{len(demo)}",
        f"demo/_C.so,{record_hash(module)},{len(module)}",
        "demo/__init__.py,,",
        '"demo-1.0.dist-info/RECORD",,',
        "",
    ]


def test_hard_links_are_pruned_once_and_stay_links(tmp_path: Path) -> None:
    rewriter = Cutter()
    out, _ = rewrite(rich_package().write(tmp_path), tmp_path, rewriter)
    (member,) = named(out, "pkg", "lib/libhard.so")
    assert (member.type, member.linkname, member.size) == (tarfile.LNKTYPE, "lib/libdemo.so.1.2", 0)
    assert rewriter.planned.count("lib/libdemo.so.1.2") == 1
    assert "lib/libhard.so" not in rewriter.planned


def test_the_rewriter_sees_heads_originals_and_what_was_written(tmp_path: Path) -> None:
    rewriter = Cutter()
    rewrite(rich_package().write(tmp_path), tmp_path, rewriter)
    assert rewriter.heads["lib/libdemo.so.1.2"] == (len(LIBRARY), LIBRARY[:64])
    assert rewriter.heads["share/empty"] == (0, b"")
    assert rewriter.confirmed[0] == ("lib/libdemo.so.1.2", LIBRARY, cut_out(LIBRARY))
    assert not any(name.startswith("info/") for name in rewriter.heads)


def test_sums_are_those_of_what_is_installed(tmp_path: Path) -> None:
    package = rich_package()
    out, result = rewrite(package.write(tmp_path), tmp_path)
    assert result.installed_before == sum(len(item.data) for item in package.items)
    sizes = {member.name: member.size for member in members_of(out)["pkg"]}
    assert result.installed_after == sum(sizes.values())


def test_confirm_stops_the_run(tmp_path: Path) -> None:
    class Doubter(Cutter):
        def confirm(self, name: str, original: Source, written: Source) -> None:
            raise VerifyError("no")

    with pytest.raises(VerifyError) as caught:
        rewrite(rich_package().write(tmp_path), tmp_path, Doubter())
    assert caught.value.place.member == "lib/libdemo.so.1.2"
    assert caught.value.place.artifact == str(tmp_path / "cudademo-1.0-h0_0.conda")


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_otherwise_than_confirmed_is_found(tmp_path: Path, kind: str) -> None:
    class Fickle(Cutter):
        """Changes its mind, at the same size, after everything was confirmed."""

        def plan(self, name: str, source: Source) -> Sequence[Piece] | None:
            self.pieces = list(super().plan(name, source) or []) or None
            return self.pieces

        def stamp(self, result: RewriteResult) -> bytes:
            assert self.pieces is not None
            self.pieces[1] = Data(b"!")
            return super().stamp(result)

    path = CondaPackage([Item("lib/a.so", LIBRARY)]).write(tmp_path, kind)
    with pytest.raises(VerifyError, match=r"lib/a\.so.*another content"):
        rewrite(path, tmp_path, Fickle())


def test_a_scratch_directory_that_cannot_be_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError) as caught:
        rewrite(
            rich_package().write(tmp_path), tmp_path, options=replace(FAST, scratch_dir=tmp_path / "file/x")
        )
    assert caught.value.exit_code == 5


# --- placeholders ---


@pytest.mark.parametrize(
    ("parts", "cut", "kept"),
    [
        ((b"/opt/pre/a\0", b"b"), b"code", False),
        ((b"/opt/pre/a\0", b"/opt/pre/b\0/opt/pre"), b"code", False),
        ((b"/opt/pre/a\0", b"b"), b"code with /opt/pre/x\0", True),
    ],
    ids=["before the cut", "on both sides", "inside the cut"],
)
def test_a_library_keeps_every_placeholder_or_stays_as_it_is(
    tmp_path: Path, parts: tuple[bytes, ...], cut: bytes, kept: bool
) -> None:
    data = library(*parts, cut=cut)
    path = CondaPackage([Item("lib/a.so", data, placeholder="/opt/pre")]).write(tmp_path)
    out, result = rewrite(path, tmp_path)
    assert contents_of(out)["lib/a.so"] == (data if kept else cut_out(data))
    assert contents_of(out)["lib/a.so"].count(b"/opt/pre") == data.count(b"/opt/pre")
    assert [notice.startswith("lib/a.so: kept as it is") for notice in result.notices] == [True] * kept


def test_a_hard_link_with_a_placeholder_of_its_own_keeps_the_file(tmp_path: Path) -> None:
    items = [Item("lib/a.so", LIBRARY), hardlink("lib/b.so", "lib/a.so"), Item("lib/c.so", LIBRARY)]
    prefix = {"prefix_placeholder": "/opt/pre", "file_mode": "binary"}
    path = CondaPackage(items, entries={"lib/b.so": prefix}).write(tmp_path)
    out, result = rewrite(path, tmp_path)
    assert [change.name for change in result.changed] == ["lib/c.so"]
    assert contents_of(out)["lib/b.so"] == LIBRARY
    assert result.notices[0].startswith("lib/a.so: kept as it is")


def test_sha256_in_prefix_follows_or_goes(tmp_path: Path) -> None:
    data = library(b"a", b"b")
    digest = hashlib.sha256(data).hexdigest()
    path = CondaPackage(
        [Item("lib/a.so", data), Item("lib/b.so", data)],
        entries={"lib/a.so": {"sha256_in_prefix": digest}, "lib/b.so": {"sha256_in_prefix": "12"}},
    ).write(tmp_path)
    out, _ = rewrite(path, tmp_path)
    first, second = json.loads(contents_of(out)["info/paths.json"])["paths"]
    assert first["sha256_in_prefix"] == first["sha256"] == hashlib.sha256(cut_out(data)).hexdigest()
    assert "sha256_in_prefix" not in second


# --- names, stamp, second run ---


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_input_gives_the_same_bytes_with_any_number_of_jobs(tmp_path: Path, kind: str) -> None:
    path = rich_package().write(tmp_path, kind)
    first = rewrite(path, tmp_path)[0].read_bytes()
    assert rewrite(path, tmp_path, options=replace(FAST, jobs=3))[0].read_bytes() == first


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_run_changes_nothing(tmp_path: Path, kind: str) -> None:
    first, _ = rewrite(
        rich_package().write(tmp_path, kind), tmp_path, options=replace(FAST, build_suffix="sm80")
    )
    before = first.read_bytes()
    second, result = rewrite(first, tmp_path, options=replace(FAST, build_suffix="sm80"))
    assert second.name == first.name
    assert second.read_bytes() == before
    assert result.changed == ()


@pytest.mark.parametrize("kind", KINDS)
def test_an_old_stamp_is_replaced_in_its_place(tmp_path: Path, kind: str) -> None:
    package = rich_package(info={"info/wheelslim.json": b"old"})
    path = package.write(tmp_path, kind)
    out, _ = rewrite(path, tmp_path)
    assert json.loads(contents_of(out)["info/wheelslim.json"])["by"] == "test"
    names = {name: [member.name for member in members] for name, members in members_of(path).items()}
    assert {name: [member.name for member in members] for name, members in members_of(out).items()} == names


@pytest.mark.parametrize("kind", KINDS)
def test_the_build_suffix_changes_index_and_names_together(tmp_path: Path, kind: str) -> None:
    path = rich_package().write(tmp_path, kind, file_name=f"renamed{kind}")
    out, _ = rewrite(path, tmp_path, options=replace(FAST, build_suffix="sm80_sm86"))
    assert out.name == f"cudademo-1.0-h0_0_sm80_sm86{kind}"
    before, after = (json.loads(contents_of(one)["info/index.json"]) for one in (path, out))
    assert after == before | {"build": "h0_0_sm80_sm86"}
    if kind == ".conda":
        with zipfile.ZipFile(out) as archive:
            assert archive.namelist() == [
                "metadata.json",
                "pkg-cudademo-1.0-h0_0_sm80_sm86.tar.zst",
                "info-cudademo-1.0-h0_0_sm80_sm86.tar.zst",
            ]


def test_without_a_suffix_the_index_keeps_its_bytes(tmp_path: Path) -> None:
    path = rich_package(info={"info/index.json": b'{"name":"a",  "version":"1","build":"0"}'}).write(tmp_path)
    out, _ = rewrite(path, tmp_path)
    assert contents_of(out)["info/index.json"] == b'{"name":"a",  "version":"1","build":"0"}'


@pytest.mark.parametrize("suffix", ["a-b", "a/b", "", "ä", "8.6", "86+PTX"])
def test_a_suffix_that_no_build_string_can_hold_is_refused(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(UsageError, match="suffix"):
        rewrite(rich_package().write(tmp_path), tmp_path, options=replace(FAST, build_suffix=suffix))


def test_a_package_with_nothing_to_cut_is_copied(tmp_path: Path) -> None:
    path = CondaPackage([Item("lib/a.so", library(b"host only")), Item("b", b"c")], subdir="noarch").write(
        tmp_path
    )
    out, result = rewrite(path, tmp_path)
    assert out.read_bytes() == path.read_bytes()
    assert result.changed == ()


def test_only_the_changed_tar_is_compressed_anew(tmp_path: Path) -> None:
    path = CondaPackage([Item("lib/a.txt", b"text" * 1000)], level=1).write(tmp_path)
    out, _ = rewrite(path, tmp_path, options=replace(FAST, build_suffix="x", compression_level=19))
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out) as new:
        assert new.read("pkg-cudademo-1.0-h0_0_x.tar.zst") == old.read("pkg-cudademo-1.0-h0_0.tar.zst")
        assert [info.date_time for info in new.infolist()] == [info.date_time for info in old.infolist()]


# --- formats ---


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", [ArtifactKind.CONDA, ArtifactKind.TAR_BZ2])
def test_formats_convert_with_every_member(tmp_path: Path, kind: str, target: ArtifactKind) -> None:
    path = rich_package().write(tmp_path, kind)
    out, _ = rewrite(path, tmp_path, options=replace(FAST, format=target))
    kept, _ = rewrite(path, tmp_path)
    assert contents_of(out) == contents_of(kept)
    assert set(tars_of(out)) == ({"all"} if target is ArtifactKind.TAR_BZ2 else {"info", "pkg"})
    names = [member.name for members in members_of(out).values() for member in members]
    if target is ArtifactKind.TAR_BZ2:
        assert [name.startswith("info/") for name in names] == sorted(
            (name.startswith("info/") for name in names), reverse=True
        )
    with CondaArtifact(out) as artifact:
        assert artifact.kind is target
        assert len([member for member, _ in artifact.walk(lambda _member, _head: False)]) == len(names)


def test_a_conversion_alone_gets_no_stamp(tmp_path: Path) -> None:
    path = CondaPackage([Item("a", b"b")]).write(tmp_path, ".tar.bz2")
    out, _ = rewrite(path, tmp_path, options=replace(FAST, format=ArtifactKind.CONDA))
    assert contents_of(out) == contents_of(path)


def test_a_package_without_files_converts(tmp_path: Path) -> None:
    path = CondaPackage([]).write(tmp_path, ".tar.bz2")
    out, _ = rewrite(path, tmp_path, options=replace(FAST, format=ArtifactKind.CONDA))
    assert members_of(out)["pkg"] == []


def test_a_hard_link_across_the_two_tars_is_refused(tmp_path: Path) -> None:
    listed = b'{"paths": [{"_path": "share/about.json"}], "paths_version": 1}'
    info = CondaPackage([], info={"info/paths.json": listed}).info_items()
    path = tmp_path / "a.tar.bz2"
    path.write_bytes(bz2.compress(tar([*info, hardlink("share/about.json", "info/about.json")])))
    with pytest.raises(ArchiveError, match="hard link joins"):
        rewrite(path, tmp_path, options=replace(FAST, format=ArtifactKind.CONDA))


# --- dropping ---


def test_dropped_members_go_from_every_list(tmp_path: Path) -> None:
    package = CondaPackage(
        [
            Item("lib/a.a", b"static"),
            symlink("lib/link.a", "a.a"),
            Item("lib/b.a", b"linked twice"),
            hardlink("lib/c.a", "lib/b.a"),
            Item("lib/keep", b"keep"),
            Item("site-packages/x-1.dist-info/RECORD", b"../lib/a.a,,\nx.py,,\n"),
        ]
    )
    rewriter = Cutter(unwanted=("lib/a.a", "lib/b.a"))
    out, result = rewrite(package.write(tmp_path), tmp_path, rewriter)
    assert result.dropped == ("lib/a.a", "lib/link.a")
    kept = ["lib/b.a", "lib/c.a", "lib/keep", "site-packages/x-1.dist-info/RECORD"]
    assert [member.name for member in members_of(out)["pkg"]] == kept
    contents = contents_of(out)
    assert [entry["_path"] for entry in json.loads(contents["info/paths.json"])["paths"]] == kept
    assert contents["info/files"].decode().splitlines() == kept
    assert contents["site-packages/x-1.dist-info/RECORD"] == b"x.py,,\n"
    assert result.notices == ("lib/b.a: kept, since lib/c.a is a hard link to it",)


# --- paths.json that disagrees ---

WRONG: dict[str, dict[str, dict[str, object]]] = {
    "hash": {"lib/a": {"sha256": "00" * 32}},
    "size": {"lib/a": {"size_in_bytes": 77}},
    "type": {"lib/a": {"path_type": "softlink"}},
    "missing": {"lib/a": {"_path": "lib/other"}},
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_disagreeing_paths_json_is_refused_and_mended_with_force(tmp_path: Path, wrong: str) -> None:
    path = CondaPackage([Item("lib/a", b"abc"), Item("lib/b.so", LIBRARY)], entries=WRONG[wrong]).write(
        tmp_path
    )
    with pytest.raises(ArchiveError, match=r"paths\.json disagrees.*lib/.*--force") as caught:
        rewrite(path, tmp_path)
    assert caught.value.exit_code == 3
    assert caught.value.place.member == "info/paths.json"
    out, result = rewrite(path, tmp_path, options=replace(FAST, force=True))
    assert "mended" in result.notices[0]
    entries = {entry["_path"]: entry for entry in json.loads(contents_of(out)["info/paths.json"])["paths"]}
    assert entries == {
        name: {
            "_path": name,
            "path_type": "hardlink",
            "sha256": hashlib.sha256(data).hexdigest(),
            "size_in_bytes": len(data),
        }
        for name, data in {"lib/a": b"abc", "lib/b.so": cut_out(LIBRARY)}.items()
    }


# --- odd tars that are fine ---


def test_a_size_in_a_pax_header_is_rewritten_too(tmp_path: Path) -> None:
    items = [
        Item("lib/a.so", LIBRARY, pax={"size": str(len(LIBRARY)), "path": "lib/a.so"}),
        Item("b", b"after"),
    ]
    package = CondaPackage(items)
    path = package.write(tmp_path)
    assert b" size=" in tars_of(path)["pkg"]
    out, _ = rewrite(path, tmp_path)
    assert contents_of(out)["lib/a.so"] == cut_out(LIBRARY)
    assert contents_of(out)["b"] == b"after"


def test_names_with_a_leading_dot_are_the_same_names(tmp_path: Path) -> None:
    package = CondaPackage(
        [directory("."), Item("./lib/a.so", LIBRARY), hardlink("./lib/b.so", "./lib/a.so")]
    )
    path = tmp_path / "a.conda"
    plain = CondaPackage([Item("lib/a.so", LIBRARY), hardlink("lib/b.so", "lib/a.so")])
    write_conda(path, package.stem, tar(plain.info_items()), tar(package.items))
    out, _ = rewrite(path, tmp_path)
    assert [member.name for member in members_of(out)["pkg"]] == [".", "./lib/a.so", "./lib/b.so"]
    assert contents_of(out)["./lib/b.so"] == cut_out(LIBRARY)


def test_a_global_comment_is_kept(tmp_path: Path) -> None:
    package = CondaPackage([Item("lib/a.so", LIBRARY)])
    path = tmp_path / "a.conda"
    payload = tar(package.items, {"comment": "0123abcd"})
    write_conda(path, package.stem, tar(package.info_items()), payload)
    out, _ = rewrite(path, tmp_path)
    assert b" comment=0123abcd\n" in tars_of(out)["pkg"]


def test_progress_adds_up_to_the_size_of_the_package(tmp_path: Path) -> None:
    for kind in KINDS:
        path = rich_package().write(tmp_path, kind)
        steps: list[int] = []
        rewrite(path, tmp_path, options=replace(FAST, progress=steps.append))
        assert sum(steps) == path.stat().st_size
        assert min(steps) > 0


def test_nothing_is_left_in_the_scratch_directory(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    rewrite(rich_package().write(tmp_path), tmp_path, options=replace(FAST, scratch_dir=scratch))
    assert list(scratch.iterdir()) == []
