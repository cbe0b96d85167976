"""Attacks on archives, one row each: whole wheels and conda packages, and what wheelslim has to do.

``tests/unit/archive/test_attacks.py`` runs every row; ``python -m reliability.attack_page`` asks the
installers, too, and writes the tables of docs/reliability.md.
"""

from __future__ import annotations

import random
import struct
import tarfile
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from builders.conda import CondaPackage, Item, directory, hardlink, symlink, tar
from builders.rewriters import MARK
from builders.wheel import quoted, record_hash
from builders.zip_bytes import WIDE, RawMember, zip_bytes
from unit.archive.conda_rewriters import library as conda_library

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LIBRARY = MARK + random.Random(8).randbytes(3000) + bytes(40_000)
TEXT = b"device code, " * 400
INFO = "demo-1.0.dist-info"
NAME = "demo-1.0-py3-none-any.whl"
METADATA = b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n"
WHEEL = b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"

PATHS = "plain paths"
ONE_NAME = "one name, one file"
ONE_READING = "one reading"
SIZES = "true sizes"
CODECS = "known codecs"
BOMBS = "bounded"
LARGE = "ZIP64"
FILES = "known types"
INSIDE = "links inside"


@dataclass(frozen=True)
class ZipAttack:
    """A wheel; ``refused`` is the reason that wheelslim gives, None where the wheel is carried through.

    ``large``: too many members to write anew in a quick test. ``late``: it is told only when a member is
    read; members that do not change are read with ``check_input``. ``lost``: what a reader from front to
    back would see, and the result does not have.
    """

    group: str
    name: str
    rule: str
    build: Callable[[], bytes]
    refused: str | None
    late: bool = False
    large: bool = False
    lost: bytes = b""


def record_of(members: Sequence[RawMember]) -> RawMember:
    """A RECORD with a true row for each member; the first of a name counts."""
    rows: dict[str, str] = {}
    for member in members:
        name = member.name.decode("utf-8" if member.flags & 0x800 else "cp437", "replace")
        if not name.endswith("/"):
            row = f"{quoted(name)},{record_hash(member.data)},{len(member.data)}\n"
            rows.setdefault(name, row if "\n" not in name else row.replace(name, f'"{name}"'))
    text = "".join(rows.values()) + f"{INFO}/RECORD,,\n"
    return RawMember(f"{INFO}/RECORD".encode(), text.encode())


def wheel(*attack: RawMember, library: RawMember | None = None, **options: Any) -> Callable[[], bytes]:  # noqa: ANN401 - fields of the builders
    """A wheel with further members before RECORD; ``options`` go to ``zip_bytes``."""
    members = [
        RawMember(b"demo/__init__.py", b"x = 1\n"),
        library or RawMember(b"demo/lib.so", LIBRARY),
        RawMember(f"{INFO}/METADATA".encode(), METADATA),
        RawMember(f"{INFO}/WHEEL".encode(), WHEEL),
        *attack,
    ]
    everything = [*members, record_of(members)]
    return lambda: zip_bytes(everything, **options)


def extra(name: str | bytes, **fields: Any) -> RawMember:  # noqa: ANN401 - fields of the builders
    """A member with some text."""
    raw = name if isinstance(name, bytes) else name.encode()
    return RawMember(raw, fields.pop("data", TEXT), **fields)


def link(name: str, target: str) -> RawMember:
    """A symbolic link, as Info-ZIP stores it."""
    return RawMember(name.encode(), target.encode(), method=0, central={"external": 0o120777 << 16})


def unicode_path(raw: bytes, name: bytes) -> bytes:
    """Info-ZIP's extra field 0x7075: another name, with the CRC of the one that it replaces."""
    return struct.pack("<HHBI", 0x7075, 5 + len(name), 1, zlib.crc32(raw)) + name


def many(count: int, **options: Any) -> Callable[[], bytes]:  # noqa: ANN401 - fields of the builders
    """A wheel of ``count`` empty members more."""
    return wheel(*(RawMember(b"demo/%d" % index, b"", method=0) for index in range(count)), **options)


def bomb() -> bytes:
    """Twenty members of 64 MiB of zeros: 1.3 GiB out of 1.3 MB."""
    zeros = bytes(64 << 20)
    first = RawMember(b"demo/0", zeros)
    payload, crc = first.payload, zlib.crc32(zeros)
    sizes = {"size": len(zeros), "crc": crc}
    members = [
        RawMember(b"demo/%d" % index, b"", compressed=payload, local=sizes, central=sizes)
        for index in range(20)
    ]
    return wheel(*members)()


def overlapping_bomb() -> bytes:
    """Two entries of the directory share one local header, as in the bombs of overlapping files."""
    one = extra("demo/a", local={}, central={})
    return wheel(one, extra("demo/b", central={"offset": 0, "name": b"demo/b"}))()


def fake_end(*, there: bool) -> bytes:
    """An end record inside the comment; ``there``: at its very end, where it is the true one to all."""
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 0, 0, 0, 0, 0)
    return end if there else end + b"."


def two_archives() -> bytes:
    """One wheel after another: who reads from the front sees the first."""
    first = wheel(extra("demo/evil.py"))()
    return wheel(prefix=first)()


def hidden_local_entry() -> bytes:
    """A local entry that the directory does not list."""
    hidden = zip_bytes([extra("demo/hidden.py", data=b"import os  # hidden\n", method=0)])
    return wheel(extra("demo/a", gap=hidden[: hidden.index(b"PK\x01\x02")]))()


def _names() -> list[ZipAttack]:
    def refused(name: str, member: str | bytes, **fields: Any) -> ZipAttack:  # noqa: ANN401
        return ZipAttack("names", name, PATHS, wheel(extra(member, **fields)), "leads outside|UTF-8")

    return [
        refused("`..` in a name", "demo/../../evil.py"),
        refused("`..` first", "../evil.py"),
        refused("`.` in a name", "demo/./evil.py"),
        refused("absolute", "/tmp/evil.py"),
        refused("drive", "C:evil.py"),
        refused("drive and root", "C:/evil.py"),
        refused("UNC", "//host/share/evil.py"),
        refused("UNC with backslashes", "\\\\host\\share\\evil.py"),
        refused("backslash", "demo\\..\\..\\evil.py"),
        refused("NUL in a name", b"demo/a.py\0.txt"),
        refused("control characters in a name", b"demo/\x1b[2J.py"),
        refused("empty name", b""),
        refused("empty part", "demo//evil.py"),
        refused("no UTF-8, against the flag", b"demo/\xff\xfe.py", flags=0x800),
        ZipAttack(
            "names",
            "Unicode Path field with another name",
            ONE_NAME,
            wheel(extra("demo/a.py", extra=unicode_path(b"demo/a.py", b"demo/b.py"))),
            "Unicode Path",
        ),
        ZipAttack(
            "names",
            "Unicode Path field with the same name",
            ONE_NAME,
            wheel(extra("demo/a.py", extra=unicode_path(b"demo/a.py", b"demo/a.py"))),
            None,
        ),
        ZipAttack(
            "links",
            "symbolic link that leads outside",
            "not followed",
            wheel(link("demo/out", "../../../../etc/passwd")),
            None,
        ),
        ZipAttack(
            "links",
            "file behind a symbolic link",
            ONE_NAME,
            wheel(link("demo/out", "/tmp"), extra("demo/out/evil.py")),
            "no directory",
        ),
        ZipAttack(
            "links", "file behind a file", ONE_NAME, wheel(extra("demo/a"), extra("demo/a/b")), "no directory"
        ),
        ZipAttack(
            "links",
            "library that is a symbolic link",
            "not followed",
            wheel(link("demo/other.so", "lib.so")),
            None,
        ),
        ZipAttack(
            "duplicates",
            "same name, same bytes",
            ONE_NAME,
            wheel(extra("demo/a.py"), extra("demo/a.py")),
            "same name",
        ),
        ZipAttack(
            "duplicates",
            "same name, other bytes",
            ONE_NAME,
            wheel(extra("demo/a.py"), extra("demo/a.py", data=b"evil")),
            "same name",
        ),
        ZipAttack(
            "duplicates",
            "file and directory",
            ONE_NAME,
            wheel(extra("demo/a"), RawMember(b"demo/a/", b"", method=0)),
            "same name",
        ),
        ZipAttack("duplicates", "directory with content", ONE_NAME, wheel(extra("demo/a/")), "has content"),
        ZipAttack(
            "duplicates",
            "names that differ in case",
            "as on Linux",
            wheel(extra("demo/a.py"), extra("demo/A.py", data=b"other")),
            None,
        ),
        ZipAttack(
            "duplicates",
            "names that differ in Unicode normalization",
            "as on Linux",
            wheel(extra("demo/\u00e9.py", flags=0x800), extra("demo/e\u0301.py", flags=0x800)),
            None,
        ),
    ]


def _places() -> list[ZipAttack]:
    stream = {"descriptor": 4}
    return [
        ZipAttack("places", "two members at one offset", ONE_READING, overlapping_bomb, "overlap|disagree"),
        ZipAttack(
            "places",
            "member inside another",
            ONE_READING,
            wheel(
                extra("demo/a", data=zip_bytes([extra("demo/b", method=0)]), method=0),
                extra("demo/b", central={"offset": 0}),
            ),
            "overlap|disagree",
        ),
        ZipAttack(
            "places",
            "data that reach into the directory",
            ONE_READING,
            wheel(
                extra(
                    "demo/a",
                    method=0,
                    local={"compressed": 9000, "size": 9000},
                    central={"compressed": 9000, "size": 9000},
                )
            ),
            "central directory|overlap",
        ),
        ZipAttack(
            "places",
            "offset into nothing",
            ONE_READING,
            wheel(extra("demo/a", central={"offset": 3})),
            "no local header|overlap",
        ),
        ZipAttack(
            "places",
            "offset past the end",
            ONE_READING,
            wheel(extra("demo/a", central={"offset": 1 << 30})),
            "no local header",
        ),
        ZipAttack(
            "places",
            "local entry that is not listed",
            ONE_READING,
            hidden_local_entry,
            None,
            lost=b"# hidden",
        ),
        ZipAttack(
            "places", "zeros between members", ONE_READING, wheel(extra("demo/a", gap=bytes(77))), None
        ),
        ZipAttack(
            "headers",
            "two names",
            ONE_READING,
            wheel(extra("demo/a.py", local={"name": b"demo/b.py"})),
            "disagree on the name",
        ),
        ZipAttack(
            "headers",
            "two methods",
            ONE_READING,
            wheel(extra("demo/a", local={"method": 0})),
            "disagree on the compression method",
        ),
        ZipAttack(
            "headers",
            "two CRCs",
            ONE_READING,
            wheel(extra("demo/a", local={"crc": 7})),
            "disagree on the CRC",
        ),
        ZipAttack(
            "headers",
            "two sizes",
            ONE_READING,
            wheel(extra("demo/a", local={"size": 7})),
            "disagree on the size",
        ),
        ZipAttack(
            "headers",
            "two compressed sizes",
            ONE_READING,
            wheel(extra("demo/a", local={"compressed": 7})),
            "disagree on the compressed size",
        ),
        ZipAttack(
            "headers",
            "two ideas of UTF-8",
            ONE_READING,
            wheel(extra("demo/a", local={"flags": 0x800})),
            "disagree on the flags",
        ),
        ZipAttack(
            "headers",
            "encrypted in the local header only",
            ONE_READING,
            wheel(extra("demo/a", local={"flags": 1})),
            "disagree on the flags|encrypted",
        ),
        ZipAttack("descriptors", "data descriptor", ONE_READING, wheel(extra("demo/a", **stream)), None),
        ZipAttack(
            "descriptors", "without its signature", ONE_READING, wheel(extra("demo/a", descriptor=-4)), None
        ),
        ZipAttack(
            "descriptors",
            "with sizes of 8 bytes",
            ONE_READING,
            wheel(extra("demo/a", descriptor=8, wide=True)),
            None,
        ),
        ZipAttack(
            "descriptors",
            "behind a stored member",
            ONE_READING,
            wheel(extra("demo/a", method=0, **stream)),
            None,
        ),
        ZipAttack(
            "descriptors",
            "behind the library",
            ONE_READING,
            wheel(library=RawMember(b"demo/lib.so", LIBRARY, descriptor=4)),
            None,
        ),
        ZipAttack(
            "descriptors",
            "with another CRC",
            ONE_READING,
            wheel(extra("demo/a", central={"crc": 7}, **stream)),
            "data descriptor",
        ),
        ZipAttack(
            "descriptors",
            "announced in one header only",
            ONE_READING,
            wheel(extra("demo/a", local={"flags": 8})),
            "disagree on the flags",
        ),
    ]


def _contents() -> list[ZipAttack]:
    def both(**fields: int) -> dict[str, Any]:
        return {"local": fields, "central": fields}

    def lying(name: str, refused: str, data: bytes = TEXT, **fields: Any) -> list[ZipAttack]:  # noqa: ANN401
        return [
            ZipAttack("sizes", f"{name}: {what}", SIZES, wheel(*members, library=library), refused, late=True)
            for what, members, library in (
                ("in a library", (), RawMember(b"demo/lib.so", LIBRARY[:4] + data, **fields)),
                ("in another member", (extra("demo/a", data=data, **fields),), None),
            )
        ]

    def method(name: str, number: int) -> ZipAttack:
        return ZipAttack("codecs", name, CODECS, wheel(extra("demo/a", method=number)), "not supported")

    def flagged(name: str, flags: int, refused: str = "encrypted") -> ZipAttack:
        return ZipAttack("codecs", name, CODECS, wheel(extra("demo/a", flags=flags)), refused)

    return [
        *lying("wrong CRC", "CRC", **both(crc=7)),
        *lying("holds less than it says", "another size", **both(size=9000)),
        *lying("holds more than it says", "another size", **both(size=900)),
        *lying("is no deflate stream", "corrupt|another size", compressed=b"\xff" * 100),
        *lying(
            "deflate stream is cut off", "cut off|another size", compressed=RawMember(b"", TEXT).payload[:-9]
        ),
        *lying(
            "bytes follow the deflate stream",
            "follow the end|another size",
            compressed=RawMember(b"", TEXT).payload + b"more",
        ),
        ZipAttack(
            "sizes",
            "stored, with two sizes",
            SIZES,
            wheel(extra("demo/a", method=0, **both(size=7))),
            "two sizes",
        ),
        flagged("encrypted", 1),
        flagged("strongly encrypted", 0x41),
        flagged("masked headers", 0x2000),
        flagged("compressed patched data", 0x20, "patched data"),
        method("deflate64", 9),
        method("bzip2", 12),
        method("LZMA", 14),
        method("zstandard", 93),
        ZipAttack(
            "bombs",
            "more than deflate can hold",
            BOMBS,
            wheel(extra("demo/a", data=b"", compressed=b"\x03\x00", **both(size=1 << 31))),
            "more bytes than deflate could hold",
        ),
        ZipAttack("bombs", "1.3 GiB out of 1.3 MB", BOMBS, bomb, "zip bomb"),
    ]


def _ends() -> list[ZipAttack]:
    one = extra("demo/a")
    narrow = {"entries": 0xFFFF, "here": 0xFFFF}
    return [
        ZipAttack("ZIP64", "sizes and offset of a member", LARGE, wheel(extra("demo/a", wide=True)), None),
        ZipAttack(
            "ZIP64",
            "sizes and offset of the library",
            LARGE,
            wheel(library=RawMember(b"demo/lib.so", LIBRARY, wide=True)),
            None,
        ),
        ZipAttack(
            "ZIP64",
            "end record, all at their sentinels",
            LARGE,
            wheel(one, end64={}, end={**narrow, "size": WIDE, "offset": WIDE}),
            None,
        ),
        ZipAttack("ZIP64", "end record, count alone", LARGE, wheel(one, end64={}, end=narrow), None),
        ZipAttack("ZIP64", "end record, size alone", LARGE, wheel(one, end64={}, end={"size": WIDE}), None),
        ZipAttack(
            "ZIP64", "end record, offset alone", LARGE, wheel(one, end64={}, end={"offset": WIDE}), None
        ),
        ZipAttack("ZIP64", "end record beside true values", LARGE, wheel(one, end64={}), None),
        ZipAttack(
            "ZIP64",
            "size missing",
            LARGE,
            wheel(extra("demo/a", central={"size": WIDE})),
            "missing from the ZIP64",
        ),
        ZipAttack(
            "ZIP64",
            "compressed size missing",
            LARGE,
            wheel(extra("demo/a", central={"compressed": WIDE})),
            "missing from the ZIP64",
        ),
        ZipAttack(
            "ZIP64",
            "offset missing",
            LARGE,
            wheel(extra("demo/a", central={"offset": WIDE})),
            "missing from the ZIP64",
        ),
        ZipAttack(
            "ZIP64",
            "disk number missing",
            LARGE,
            wheel(extra("demo/a", central={"disk": 0xFFFF})),
            "missing from the ZIP64",
        ),
        ZipAttack(
            "ZIP64",
            "local sizes missing",
            LARGE,
            wheel(extra("demo/a", local={"size": WIDE, "compressed": WIDE})),
            "lacks the sizes",
        ),
        ZipAttack(
            "ZIP64",
            "size of 2^63 bytes",
            LARGE,
            wheel(extra("demo/a", central={"size": WIDE, "extra": struct.pack("<HHQ", 1, 8, 1 << 63)})),
            "more bytes than deflate",
        ),
        ZipAttack(
            "ZIP64",
            "offset of 2^63",
            LARGE,
            wheel(extra("demo/a", central={"offset": WIDE, "extra": struct.pack("<HHQ", 1, 8, 1 << 63)})),
            "no local header",
        ),
        ZipAttack(
            "ZIP64", "end records disagree", LARGE, wheel(one, end64={"entries": 2, "here": 2}), "disagrees"
        ),
        ZipAttack(
            "ZIP64",
            "end record elsewhere",
            LARGE,
            wheel(one, end64={"where": 3, "record": 99}, end=narrow),
            "ZIP64 end record is missing",
        ),
        ZipAttack("ZIP64", "several disks", LARGE, wheel(one, end64={"disks": 2}), "several disks"),
        ZipAttack("many", "66,000 members", LARGE, many(66_000, end64={}, end=narrow), None, large=True),
        ZipAttack(
            "many", "66,000 members, count modulo 2^16", LARGE, many(66_000), "other bytes", large=True
        ),
        ZipAttack(
            "many",
            "more members than there are",
            ONE_READING,
            wheel(one, end={"entries": 9, "here": 9}),
            "does not parse",
        ),
        ZipAttack(
            "many",
            "fewer members than there are",
            ONE_READING,
            wheel(one, end={"entries": 2, "here": 2}),
            "other bytes",
        ),
        ZipAttack("many", "several disks", ONE_READING, wheel(one, end={"disk": 1}), "several disks"),
        ZipAttack("around", "comment of the archive", ONE_READING, wheel(one, comment=b"by hand"), None),
        ZipAttack("around", "comment of a member", ONE_READING, wheel(extra("demo/a", comment=b"why")), None),
        ZipAttack(
            "around",
            "end record inside the comment",
            ONE_READING,
            wheel(one, comment=fake_end(there=False)),
            "end records?",
        ),
        ZipAttack(
            "around",
            "end record at the end of the comment",
            ONE_READING,
            wheel(one, comment=fake_end(there=True)),
            "exactly one dist-info",
        ),
        ZipAttack(
            "around",
            "bytes before the archive, offsets count them",
            ONE_READING,
            wheel(one, prefix=b"#!/bin/sh\nexit\n"),
            None,
        ),
        ZipAttack(
            "around",
            "bytes before the archive, offsets do not",
            ONE_READING,
            wheel(one, prefix=b"#!/bin/sh\nexit\n", adjusted=False),
            None,
        ),
        ZipAttack(
            "around", "another archive before it", ONE_READING, two_archives, "stands before the archive"
        ),
        ZipAttack("around", "bytes after the archive", ONE_READING, lambda: wheel(one)() + b"\0", "cut off"),
        ZipAttack(
            "around",
            "another archive after it",
            ONE_READING,
            lambda: wheel(one)() + wheel(one)()[:-22],
            "cut off|end record",
        ),
        ZipAttack("around", "cut off", ONE_READING, lambda: wheel(one)()[:-30], "cut off"),
    ]


ZIP_ATTACKS = (*_names(), *_places(), *_contents(), *_ends())


@dataclass(frozen=True)
class TarAttack:
    """Members of a conda package's files, behind ``raw``; ``refused`` as in ``ZipAttack``."""

    name: str
    rule: str
    items: tuple[Item, ...]
    refused: str | None
    raw: bytes = b""


def _sparse_old() -> bytes:
    """A header of GNU's old sparse format."""
    info = tarfile.TarInfo("lib/sparse")
    info.type = tarfile.GNUTYPE_SPARSE
    return info.tobuf(tarfile.GNU_FORMAT)


def _sized(size: int) -> bytes:
    """A header that claims ``size`` bytes, in base 256 where it has to."""
    info = tarfile.TarInfo("lib/huge")
    info.size = size
    return info.tobuf(tarfile.GNU_FORMAT)


def _negative() -> bytes:
    """A header whose size is -1 in base 256, with a true checksum."""
    block = bytearray(_sized(0))
    block[124:136], block[148:156] = b"\xff" * 12, b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


FILE = Item("lib/a", b"x")
CUT = conda_library(b"x" * 500, b"y")
"""A file that is rewritten."""


def conda_package(attack: TarAttack) -> tuple[bytes, bytes]:
    """The two tars of a package with the attack among its files: info, and the files."""
    items = [*attack.items, Item("lib/lib.so", CUT, mode=0o755)]
    described = CondaPackage(items if attack.refused is None else items[-1:])
    return tar(described.info_items()), attack.raw + tar(items)


TAR_ATTACKS = (
    TarAttack("`..` in a name", PATHS, (Item("lib/../../x", b"x"),), "leads outside"),
    TarAttack("absolute", PATHS, (Item("/tmp/x", b"x"),), "leads outside"),
    TarAttack("drive", PATHS, (Item("C:/x", b"x"),), "leads outside"),
    TarAttack("UNC", PATHS, (Item("\\\\host\\share\\x", b"x"),), "leads outside"),
    TarAttack("control characters in a name", PATHS, (Item("lib/\x1b[2J", b"x"),), "leads outside"),
    TarAttack("two of one name", ONE_NAME, (FILE, Item("./lib/a", b"y")), "same name|listed twice"),
    TarAttack("file and directory", ONE_NAME, (directory("lib/a"), FILE), "same name"),
    TarAttack("names that differ in case", "as on Linux", (FILE, Item("lib/A", b"y")), None),
    TarAttack(
        "absolute symbolic link", INSIDE, (symlink("lib/x", "/etc/passwd"),), "symbolic link leads outside"
    ),
    TarAttack(
        "symbolic link with `..`", INSIDE, (symlink("lib/x", "../../etc"),), "symbolic link leads outside"
    ),
    TarAttack("symbolic link inside", INSIDE, (FILE, symlink("lib/x", "../lib/a")), None),
    TarAttack("ring of symbolic links", INSIDE, (symlink("lib/x", "y"), symlink("lib/y", "x")), None),
    TarAttack("file behind a symbolic link", INSIDE, (symlink("lib", "other"), FILE), "lies behind"),
    TarAttack("hard link outside", INSIDE, (hardlink("lib/x", "/etc/passwd"),), "hard link does not name"),
    TarAttack("hard link with `..`", INSIDE, (hardlink("lib/x", "../../x"),), "hard link does not name"),
    TarAttack("hard link to nothing", INSIDE, (hardlink("lib/x", "lib/y"),), "hard link does not name"),
    TarAttack(
        "hard link to a later file", INSIDE, (hardlink("lib/x", "lib/a"), FILE), "hard link does not name"
    ),
    TarAttack(
        "hard link to a symbolic link",
        INSIDE,
        (FILE, symlink("lib/y", "a"), hardlink("lib/x", "lib/y")),
        "hard link does not name",
    ),
    TarAttack("hard link to a file", INSIDE, (FILE, hardlink("lib/x", "lib/a")), None),
    TarAttack("character device", FILES, (Item("lib/x", type=tarfile.CHRTYPE),), "of a type"),
    TarAttack("block device", FILES, (Item("lib/x", type=tarfile.BLKTYPE),), "of a type"),
    TarAttack("pipe", FILES, (Item("lib/x", type=tarfile.FIFOTYPE),), "of a type"),
    TarAttack("unknown type", FILES, (Item("lib/x", type=b"Z"),), "of a type"),
    TarAttack("sparse file of GNU", FILES, (), "sparse", _sparse_old()),
    TarAttack("sparse file in pax", FILES, (Item("lib/x", b"x", pax={"GNU.sparse.major": "1"}),), "sparse"),
    TarAttack(
        "link with data",
        SIZES,
        (FILE, Item("lib/x", b"data", type=tarfile.LNKTYPE, link="lib/a")),
        "has data",
    ),
    TarAttack("size past the end", SIZES, (), "truncated", _sized(1 << 29)),
    TarAttack("size of 2^63 bytes", SIZES, (), "zip bomb", _sized(1 << 63)),
    TarAttack("1 TiB out of some KiB", BOMBS, (), "zip bomb", _sized(1 << 40)),
    TarAttack("negative size", SIZES, (), "does not parse", _negative()),
    TarAttack(
        "pax header that gives another size",
        SIZES,
        (Item("lib/x", b"x", pax={"size": "99999999"}),),
        "truncated|does not parse",
    ),
)
