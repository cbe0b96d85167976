"""``verify`` finds every fault that is planted into a slimmed wheel or library, and its place."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from builders import cubin as make_cubin
from builders import fatbin as make
from builders.library import CudaLibrary
from builders.wheel import Member, Wheel
from corpus.recipes import BY_NAME
from integration.pruning import prune as prune_library
from judges import binutils
from judges.schemas import assert_valid
from wheelslim.elf.reader import read_elf
from wheelslim.errors import ArchiveError, UsageError, VerifyError
from wheelslim.fatbin.layout import EntryKind
from wheelslim.library import read_library
from wheelslim.pieces import stream
from wheelslim.pipeline import PruneOptions, prune
from wheelslim.plan import Planner, Request
from wheelslim.proof.promise import Promise
from wheelslim.report.verification_json import verification_json
from wheelslim.report.verification_text import render_verification_text
from wheelslim.slim import slim_library
from wheelslim.source import Source
from wheelslim.targets import parse_targets
from wheelslim.verification import Verification, verify

LIBRARY = "cuda_demo/libdemo.so"
RECORD = "cuda_demo-1.0.dist-info/RECORD"
STAMP = "cuda_demo-1.0.dist-info/wheelslim.json"
WORD = struct.Struct("<Q")
PHDR = struct.Struct("<IIQQQQQQ")


@dataclass
class Pair:
    """A wheel and its slimmed copy, with a way to spoil the copy."""

    original: Path
    slimmed: Path
    folder: Path
    members: dict[str, tuple[zipfile.ZipInfo, bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        with zipfile.ZipFile(self.slimmed) as archive:
            self.members = {info.filename: (info, archive.read(info)) for info in archive.infolist()}

    def data(self, name: str) -> bytes:
        return self.members[name][1]

    def put(self, name: str, data: bytes, *, true_record: bool = True) -> None:
        """Give a member other bytes; RECORD follows, so that only the bytes can give the fault away."""
        self.members[name] = (self.members[name][0], data)
        if true_record and name != RECORD:
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
            rows = self.data(RECORD).decode().splitlines(keepends=True)
            rows = [f"{name},sha256={digest},{len(data)}\n" if r.startswith(f"{name},") else r for r in rows]
            self.put(RECORD, "".join(rows).encode())

    def write(self) -> Path:
        """Write the copy anew, with sound CRCs."""
        path = self.folder / self.slimmed.name
        with zipfile.ZipFile(path, "w") as archive:
            for info, data in self.members.values():
                archive.writestr(info, data)
        return path

    def verify(self, targets: str | None = None) -> Verification:
        return verify(self.original, self.write(), targets)


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return pair_of(BY_NAME["many_containers"].path.read_bytes(), tmp_path)


def pair_of(library: bytes, tmp_path: Path, arch: str = "sm_86", *, exact: bool = False) -> Pair:
    for name in ("in", "spoilt"):
        (tmp_path / name).mkdir()
    wheel = Wheel(
        {
            "cuda_demo/__init__.py": b"x = 1\n",
            LIBRARY: Member(library, mode=0o755),
            "cuda_demo/run.sh": Member(b"#!/bin/sh\n", mode=0o755),
            "cuda_demo/data.bin": Member(bytes(range(256)) * 40, stored=True),
        }
    ).write(tmp_path / "in")
    request = Request(parse_targets(arch), exact=exact)
    report = prune(wheel, PruneOptions(request, output_dir=tmp_path / "slim", force=True))
    assert report.output is not None
    return Pair(wheel, tmp_path / "slim" / report.output.rpartition("/")[2], tmp_path / "spoilt")


def broken(result: Verification, promise: Promise) -> VerifyError:
    """The failure of the one promise that does not hold."""
    assert not result.holds
    failed = {finding.promise: finding.failure for finding in result.findings if finding.failure is not None}
    assert set(failed) == {promise}
    return failed[promise]


@dataclass(frozen=True)
class Slimmed:
    """Where things lie in a slimmed library: file offsets of containers, entries and the relocations."""

    data: bytes

    def located(self, tmp_path: Path) -> tuple[list[tuple[int, int, int]], dict[int, tuple[int, int]]]:
        """Return (file offset, size, address) of containers, and by address where they are named."""
        path = tmp_path / "located.so"
        path.write_bytes(self.data)
        with path.open("rb") as file:
            library = read_library(Source.of_file(file.fileno()))
        containers, named = [], {}
        for part in library.device:
            for container in part.tiling.containers:
                address = part.address(container)
                offset = part.section.sh_offset + container.offset
                containers.append((offset, container.size, address))
                reference = part.wrapped[address]
                slot = library.elf.offset_of(reference.slot, 8)
                assert slot is not None
                assert reference.addend_offset is not None
                named[address] = (slot, reference.addend_offset)
        return containers, named


def patched(data: bytes, *patches: tuple[int, bytes]) -> bytes:
    result = bytearray(data)
    for offset, new in patches:
        assert result[offset : offset + len(new)] != new
        result[offset : offset + len(new)] = new
    return bytes(result)


def flipped(data: bytes, offset: int) -> bytes:
    return patched(data, (offset, bytes((data[offset] ^ 1,))))


# What is sound


def test_a_slimmed_wheel_keeps_every_promise(pair: Pair) -> None:
    result = verify(pair.original, pair.slimmed)
    assert result.holds
    assert (result.targets, result.from_stamp) == (("sm_86",), True)
    found = {finding.promise: finding.what for finding in result.findings}
    assert found[Promise.DEVICE_CODE].startswith("42 containers × 1 target: identical; 42 entries kept")  # noqa: RUF001
    assert found[Promise.MEMBERS] == "4 members: identical"
    assert found[Promise.BOOKS] == "8 rows of RECORD: true"


def test_a_wheel_that_another_tool_packed_again_holds_too(pair: Pair) -> None:
    """The members' bytes count, not how they are compressed."""
    for info, _ in pair.members.values():
        info.compress_type = zipfile.ZIP_STORED
    assert pair.verify().holds


def test_a_wheel_is_its_own_copy(pair: Pair) -> None:
    assert verify(pair.original, pair.original, "sm_86,sm_90").holds


@pytest.mark.parametrize(
    "name", ["rdc", "relr", "lld", "gold", "one_segment_2m", "patchelf_2m", "many_archs"]
)
def test_slimmed_libraries_hold(name: str, tmp_path: Path) -> None:
    prune_library(BY_NAME[name].path, tmp_path / "lib.so", "sm_86")
    (tmp_path / "lib.so").chmod(BY_NAME[name].path.stat().st_mode)
    result = verify(BY_NAME[name].path, tmp_path / "lib.so", "sm_86")
    assert result.holds, render_verification_text(result, None)


# What issue by issue must be found


def test_one_byte_in_a_kept_cubin(pair: Pair, tmp_path: Path) -> None:
    data = pair.data(LIBRARY)
    containers, _ = Slimmed(data).located(tmp_path)
    offset, size, _ = containers[7]
    pair.put(LIBRARY, flipped(data, offset + size - 200))
    error = broken(pair.verify(), Promise.DEVICE_CODE)
    assert (error.place.member, error.place.section) == (LIBRARY, ".nv_fatbin")
    section = containers[0][0]
    assert error.place.offset == offset + 16 - section  # the entry, past the header of its container
    assert "sm_86" in str(error)


@pytest.mark.parametrize("section", [".text", ".rodata", ".data", ".dynstr", ".eh_frame"])
def test_one_byte_in_host_code_or_data(pair: Pair, tmp_path: Path, section: str) -> None:
    data = pair.data(LIBRARY)
    path = tmp_path / "lib.so"
    path.write_bytes(data)
    with path.open("rb") as file:
        found = read_elf(Source.of_file(file.fileno())).section(section)
    assert found is not None
    pair.put(LIBRARY, flipped(data, found.sh_offset + found.sh_size - 1))
    error = broken(pair.verify(), Promise.HOST_CODE)
    assert error.place.member == LIBRARY
    assert error.place.offset is not None


@pytest.mark.parametrize(
    "row",
    ["cuda_demo/__init__.py", LIBRARY, "cuda_demo-1.0.dist-info/WHEEL", STAMP],
    ids=["unchanged", "library", "WHEEL", "stamp"],
)
@pytest.mark.parametrize("field", ["hash", "size"])
def test_one_byte_in_record(pair: Pair, row: str, field: str) -> None:
    record = pair.data(RECORD)
    start = record.index(f"{row},".encode())
    end = record.index(b"\n", start)
    at = record.index(b"sha256=", start) + 10 if field == "hash" else end - 1
    other = b"A" if record[at : at + 1] != b"A" else b"B"
    pair.put(RECORD, patched(record, (at, other if field == "hash" else bytes((record[at] ^ 1,)))))
    error = broken(pair.verify(), Promise.BOOKS)
    assert (error.place.member, error.place.offset) == (RECORD, start)
    assert row in str(error)


def test_a_needed_sm_80_cubin_dropped_for_sm_86(tmp_path: Path) -> None:
    """What a filter by name does: sm_86 devices ran the sm_80 code of the second container."""
    library = (
        CudaLibrary((make.container(["sm_80", "sm_86"]), make.container(["sm_80", "sm_90"]))).build().data
    )
    pair = pair_of(library, tmp_path, exact=True)
    error = broken(pair.verify("sm_86"), Promise.DEVICE_CODE)
    assert "sm_86 no longer runs what it ran before" in str(error)
    assert (error.expected, error.found) == ("compatible with sm_80", "none")
    assert error.place.section == ".nv_fatbin"
    told = verify(pair.original, pair.slimmed)
    assert told.holds
    assert "--exact" in told.notices[0]


def test_two_containers_swapped(tmp_path: Path) -> None:
    containers = tuple(
        make.container([make.entry("sm_86", size=256, seed=seed), "sm_90"]) for seed in range(3)
    )
    library = CudaLibrary(containers).build().data
    pair = pair_of(library, tmp_path)
    data = pair.data(LIBRARY)
    (_, (one, size, _), (two, other_size, _)), _ = Slimmed(data).located(tmp_path)
    assert size == other_size
    swapped = patched(data, (one, data[two : two + size]), (two, data[one : one + size]))
    pair.put(LIBRARY, swapped)
    error = broken(pair.verify(), Promise.DEVICE_CODE)
    assert error.place.member == LIBRARY
    assert error.place.section == ".nv_fatbin"


def test_a_wrapper_that_points_elsewhere(pair: Pair, tmp_path: Path) -> None:
    data = pair.data(LIBRARY)
    containers, named = Slimmed(data).located(tmp_path)
    (slot, addend), other = named[containers[3][2]], WORD.pack(containers[4][2])
    pair.put(LIBRARY, patched(data, (slot, other), (addend, other)))
    failed = {f.promise for f in pair.verify().findings if f.failure is not None}
    assert Promise.DEVICE_CODE in failed


def test_two_wrappers_that_point_at_each_others_container(pair: Pair, tmp_path: Path) -> None:
    data = pair.data(LIBRARY)
    containers, named = Slimmed(data).located(tmp_path)
    third, fourth = containers[3][2], containers[4][2]
    patches = [(at, WORD.pack(fourth)) for at in named[third]] + [
        (at, WORD.pack(third)) for at in named[fourth]
    ]
    pair.put(LIBRARY, patched(data, *patches))
    failed = {f.promise for f in pair.verify().findings if f.failure is not None}
    assert Promise.DEVICE_CODE in failed


@pytest.mark.parametrize("which", [0, 1, 2, -1])
@pytest.mark.parametrize("field", ["offset", "address", "both"])
def test_a_pt_load_off_by_a_page(pair: Pair, which: int, field: str) -> None:
    data = pair.data(LIBRARY)
    table, count = WORD.unpack_from(data, 32)[0], struct.unpack_from("<H", data, 56)[0]
    headers = {table + i * PHDR.size: PHDR.unpack_from(data, table + i * PHDR.size) for i in range(count)}
    at = [offset for offset, fields in headers.items() if fields[0] == 1][which]
    fields = list(headers[at])
    if field in ("offset", "both"):
        fields[2] += 0x1000
        fields[5] -= min(fields[5], 0x1000)
    if field in ("address", "both"):
        fields[3] += 0x1000
        fields[4] += 0x1000
    pair.put(LIBRARY, patched(data, (at, PHDR.pack(*fields))))
    result = pair.verify()
    failed = {f.promise: f.failure for f in result.findings if f.failure is not None}
    assert failed.keys() & {Promise.HOST_CODE, Promise.DEVICE_CODE}
    assert all(error.place.member == LIBRARY for error in failed.values())


@pytest.mark.parametrize("name", ["cuda_demo/run.sh", LIBRARY])
def test_an_exec_bit_lost(pair: Pair, name: str) -> None:
    pair.members[name][0].external_attr &= ~(0o111 << 16)
    error = broken(pair.verify(), Promise.ATTRIBUTES)
    assert error.place.member == name
    assert (error.expected, error.found) == ("0755", "0644")


# More that must be found


def test_a_date_that_changed(pair: Pair) -> None:
    pair.members["cuda_demo/run.sh"][0].date_time = (2027, 1, 1, 0, 0, 0)
    assert broken(pair.verify(), Promise.ATTRIBUTES).place.member == "cuda_demo/run.sh"


def test_members_in_another_order(pair: Pair) -> None:
    pair.members = dict(sorted(pair.members.items(), reverse=True))
    assert broken(pair.verify(), Promise.ORDER).place.member is not None


def test_a_member_that_is_gone(pair: Pair) -> None:
    del pair.members["cuda_demo/data.bin"]
    assert broken(pair.verify(), Promise.MEMBERS).place.member == "cuda_demo/data.bin"


def test_a_member_that_is_new(pair: Pair) -> None:
    pair.members["cuda_demo/more.py"] = (zipfile.ZipInfo("cuda_demo/more.py"), b"")
    assert broken(pair.verify(), Promise.MEMBERS).place.member == "cuda_demo/more.py"


def test_a_byte_in_a_member_that_is_no_library(pair: Pair) -> None:
    pair.put("cuda_demo/data.bin", flipped(pair.data("cuda_demo/data.bin"), 5000))
    result = pair.verify()
    failed = {f.promise: f.failure for f in result.findings if f.failure is not None}
    assert failed[Promise.MEMBERS].place.member == "cuda_demo/data.bin"
    assert failed[Promise.MEMBERS].place.offset == 5000


def test_a_line_of_wheel_besides_the_build_tag(pair: Pair) -> None:
    name = "cuda_demo-1.0.dist-info/WHEEL"
    pair.put(name, pair.data(name).replace(b"Root-Is-Purelib: false", b"Root-Is-Purelib: true"))
    error = broken(pair.verify(), Promise.BOOKS)
    assert error.place.member == name
    assert "Purelib" in str(error)


@pytest.mark.parametrize("edit", ["without", "twice", "moved", "added"])
def test_rows_of_record_that_are_missing_repeated_moved_or_new(pair: Pair, edit: str) -> None:
    rows = pair.data(RECORD).decode().splitlines(keepends=True)
    edited = {
        "without": rows[1:],
        "twice": [rows[0], *rows],
        "moved": [rows[1], rows[0], *rows[2:]],
        "added": [*rows, "cuda_demo/ghost.py,,\n"],
    }[edit]
    pair.put(RECORD, "".join(edited).encode())
    assert broken(pair.verify(), Promise.BOOKS).place.member == RECORD


def test_a_dropped_member_that_the_stamp_names_is_no_fault(pair: Pair) -> None:
    stamp = json.loads(pair.data(STAMP))
    stamp["dropped_members"] = ["cuda_demo/data.bin"]
    pair.put(STAMP, json.dumps(stamp).encode())
    rows = pair.data(RECORD).decode().splitlines(keepends=True)
    pair.put(RECORD, "".join(row for row in rows if "data.bin" not in row).encode())
    del pair.members["cuda_demo/data.bin"]
    assert pair.verify().holds


def test_an_entry_whose_header_alone_differs(pair: Pair, tmp_path: Path) -> None:
    data = pair.data(LIBRARY)
    containers, _ = Slimmed(data).located(tmp_path)
    offset = containers[5][0] + 16
    assert struct.unpack_from("<H", data, offset)[0] == EntryKind.CUBIN
    pair.put(LIBRARY, patched(data, (offset + 28, struct.pack("<I", 80))))
    assert broken(pair.verify(), Promise.DEVICE_CODE).place.member == LIBRARY


@pytest.mark.parametrize(
    ("name", "what"), [("cuda_demo/data.bin", "content differs"), (LIBRARY, "CRC|corrupt")]
)
def test_a_wheel_whose_data_are_damaged(pair: Pair, name: str, what: str) -> None:
    path = pair.write()
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo(name)
    data = path.read_bytes()
    path.write_bytes(flipped(data, info.header_offset + 30 + len(name) + info.compress_size // 2))
    failed = {f.promise: f.failure for f in verify(pair.original, path).findings if f.failure is not None}
    error = failed[Promise.MEMBERS]
    assert error.place.member == name
    assert re.search(what, str(error))


# Unrelated or unknown


def test_unrelated_libraries(tmp_path: Path) -> None:
    result = verify(BY_NAME["plain"].path, BY_NAME["lld"].path, "sm_86")
    assert "unrelated" in str(result.failure)


def test_files_of_two_kinds(pair: Pair) -> None:
    with pytest.raises(VerifyError, match=r"the two are unrelated.*a wheel.*a file"):
        verify(pair.original, BY_NAME["plain"].path, "sm_86")


def test_wheels_of_two_projects(pair: Pair, tmp_path: Path) -> None:
    other = Wheel({"x.py": b""}, name="other").write(tmp_path)
    with pytest.raises(VerifyError, match=r"unrelated.*cuda_demo 1\.0.*other 1\.0"):
        verify(pair.original, other, "sm_86")


def test_trees_without_a_common_file(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_bytes(b"")
    with pytest.raises(VerifyError, match="unrelated"):
        verify(tmp_path / "one", tmp_path / "two", "sm_86")


def test_a_text_and_a_library(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"hello\n")
    assert not verify(BY_NAME["plain"].path, tmp_path / "text", "sm_86").holds


def test_without_targets_and_without_a_stamp() -> None:
    with pytest.raises(UsageError, match="--arch"):
        verify(BY_NAME["plain"].path, BY_NAME["plain"].path)


def test_a_stamp_that_does_not_parse(pair: Pair) -> None:
    pair.put(STAMP, b"{")
    with pytest.raises(ArchiveError, match="does not say what wheelslim did"):
        pair.verify()


# Other tools


def test_strip_is_judged(tmp_path: Path) -> None:
    """Symbols are not loaded, but their loss was not asked for: it is a broken promise, told as such."""
    path = tmp_path / "lib.so"
    binutils.strip(BY_NAME["plain"].path, path)
    path.chmod(BY_NAME["plain"].path.stat().st_mode)
    error = broken(verify(BY_NAME["plain"].path, path, "sm_86"), Promise.HOST_CODE)
    assert ".symtab" in str(error)


def test_a_tree_is_compared_file_by_file(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "pkg").mkdir(parents=True)
        (tmp_path / name / "pkg" / "text").write_bytes(b"text")
        (tmp_path / name / "link").symlink_to("pkg/text")
    (tmp_path / "one" / "pkg" / "lib.so").write_bytes(BY_NAME["rdc"].path.read_bytes())
    prune_library(tmp_path / "one" / "pkg" / "lib.so", tmp_path / "two" / "pkg" / "lib.so", "sm_86")
    (tmp_path / "two" / "pkg" / "lib.so").chmod(0o644)
    (tmp_path / "one" / "pkg" / "lib.so").chmod(0o644)
    assert verify(tmp_path / "one", tmp_path / "two", "sm_86").holds
    (tmp_path / "two" / "link").unlink()
    (tmp_path / "two" / "link").symlink_to("pkg/lib.so")
    error = broken(verify(tmp_path / "one", tmp_path / "two", "sm_86"), Promise.ATTRIBUTES)
    assert (error.place.member, error.expected) == ("link", "pkg/text")


# Device code in files of its own


@pytest.fixture
def loose(tmp_path: Path) -> Pair:
    fatbin = make.container(["sm_80", "sm_86", "sm_90"]) + make.container(["sm_86", "sm_90"])
    (tmp_path / "spoilt").mkdir()
    (tmp_path / "in").mkdir()
    wheel = Wheel(
        {
            "pkg/kernels.fatbin": fatbin,
            "pkg/gemm_sm_86.cubin": make_cubin.cubin(["gemm"], sm=86),
            "pkg/gemm_sm_90.cubin": make_cubin.cubin(["gemm"], sm=90),
        }
    ).write(tmp_path / "in")
    options = PruneOptions(Request(parse_targets("sm_86")), output_dir=tmp_path / "slim")
    report = prune(wheel, options)
    assert report.output is not None
    return Pair(wheel, Path(report.output), tmp_path / "spoilt")


def test_loose_files_that_were_dropped_and_fatbins_that_were_pruned_hold(loose: Pair) -> None:
    assert "pkg/gemm_sm_90.cubin" not in loose.members
    assert len(loose.data("pkg/kernels.fatbin")) < 2 * 16 + 3 * 512
    result = verify(loose.original, loose.slimmed)
    assert result.holds, str(result.failure)


def test_a_byte_in_a_loose_fatbin(loose: Pair) -> None:
    name = "pkg/kernels.fatbin"
    loose.put(name, flipped(loose.data(name), 16 + 64 + 50))
    assert broken(loose.verify(), Promise.DEVICE_CODE).place.member == name


def test_a_loose_fatbin_without_a_container(loose: Pair) -> None:
    name = "pkg/kernels.fatbin"
    data = loose.data(name)
    loose.put(name, data[: len(data) // 2 // 8 * 8])
    assert broken(loose.verify(), Promise.DEVICE_CODE).place.member == name


def test_a_byte_in_a_loose_cubin(loose: Pair) -> None:
    name = "pkg/gemm_sm_86.cubin"
    loose.put(name, flipped(loose.data(name), 100))
    assert broken(loose.verify(), Promise.MEMBERS).place.member == name


def test_a_loose_cubin_that_was_dropped_although_a_target_runs_it_is_told(loose: Pair) -> None:
    assert verify(loose.original, loose.slimmed).notices == ()
    name = "pkg/gemm_sm_86.cubin"
    stamp_name = STAMP
    stamp = json.loads(loose.data(stamp_name))
    stamp["dropped_members"].append(name)
    loose.put(stamp_name, json.dumps(stamp).encode())
    rows = loose.data(RECORD).decode().splitlines(keepends=True)
    loose.put(RECORD, "".join(row for row in rows if not row.startswith(name)).encode())
    del loose.members[name]
    result = loose.verify()
    assert result.holds, str(result.failure)
    assert result.notices == (f"{name} could run on a target and is gone: dropped on purpose?",)


# How it is shown


def test_text_names_the_place_of_what_is_broken(pair: Pair) -> None:
    pair.members["cuda_demo/run.sh"][0].external_attr &= ~(0o111 << 16)
    text = render_verification_text(pair.verify(), 80)
    assert "BROKEN  modes and dates  see below" in text
    assert "member cuda_demo/run.sh: the mode differs (expected 0755, found 0644)" in text
    assert "broken: 1 of 6 promises" in text


def test_json_holds_the_place(pair: Pair) -> None:
    assert_valid(verification_json(verify(pair.original, pair.slimmed)))
    pair.put("cuda_demo/data.bin", flipped(pair.data("cuda_demo/data.bin"), 5000), true_record=False)
    value = verification_json(pair.verify())
    assert_valid(value)
    assert value["holds"] is False
    failures = {item["promise"]: item["failure"] for item in value["promises"] if item["failure"]}
    assert failures["members"]["member"] == "cuda_demo/data.bin"
    assert failures["members"]["offset"] == 5000


def test_planning_alone_does_not_convince_it(tmp_path: Path) -> None:
    """The proof looks at the files: a plan for other targets than those asked for is found out."""
    with BY_NAME["many_containers"].path.open("rb") as file:
        source = Source.of_file(file.fileno())
        slimmed = slim_library(source, Planner(Request(parse_targets("sm_90"))))
        assert slimmed.pieces is not None
        (tmp_path / "lib.so").write_bytes(b"".join(stream(slimmed.pieces, source)))
    (tmp_path / "lib.so").chmod(BY_NAME["many_containers"].path.stat().st_mode)
    assert verify(BY_NAME["many_containers"].path, tmp_path / "lib.so", "sm_90").holds
    broken(verify(BY_NAME["many_containers"].path, tmp_path / "lib.so", "sm_86"), Promise.DEVICE_CODE)
