"""What the fuzzers start from: small, sound inputs of each kind, made by the builders of the tests."""

from __future__ import annotations

import json
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

from builders import fatbin, zip_bytes
from builders.conda import CondaPackage, Item, hardlink, symlink, tar
from builders.library import CudaLibrary, Embedded
from builders.sources import source_of
from builders.wheel import Member, Wheel
from wheelslim.fatbin.payload import read_payload
from wheelslim.library import read_library
from wheelslim.pieces import stream
from wheelslim.plan import Planner, Request
from wheelslim.slim import slim_library
from wheelslim.targets import parse_targets

_WORDS = ("sm_80", "sm_86", "sm_90a", "compute_90")


def containers() -> tuple[bytes, ...]:
    """Plain, compressed, concatenated and no entries."""
    plain = fatbin.container([fatbin.entry(word, size=64) for word in _WORDS])
    packed = fatbin.container(
        [fatbin.entry(word, size=64, codec=codec) for word in _WORDS for codec in ("zstd", "lz4")]
    )
    joined = fatbin.container([fatbin.concatenated(_WORDS[:3], size=64), fatbin.entry("sm_86", size=64)])
    return plain, packed, joined, fatbin.container([])


def fatbins() -> list[bytes]:
    """A section, and each container alone."""
    return [b"".join(containers()), *containers()]


def libraries() -> list[bytes]:
    """The layouts that differ most."""
    small = containers()
    big = fatbin.container([fatbin.entry("sm_90", size=9000), fatbin.entry("sm_86", size=64)])
    specs = (
        CudaLibrary(small),
        CudaLibrary(small, relocations="relr", packed=True),
        CudaLibrary(small, relocatable=small, one_segment=True, align=0x200000),
        CudaLibrary(small, unreferenced=frozenset({1}), inside=frozenset({2}), moved_tables=True),
        CudaLibrary(small, embedded=(Embedded(".rodata", small, pointers=True),)),
        CudaLibrary((big, *small, big)),
    )
    return [spec.build().data for spec in specs]


def embedding_libraries() -> list[bytes]:
    """Device code outside the fatbin sections, large enough to leave the file."""
    one = tuple(fatbin.container([fatbin.entry(word, size=70_000)]) for word in ("sm_90", "sm_86", "sm_100"))
    several = containers()
    specs = (
        CudaLibrary(several, embedded=(Embedded(".ldata", one, pointers=True),), exports=40),
        CudaLibrary((), embedded=(Embedded(".cask_resource", (*several, *one)),), exports=40),
        CudaLibrary(several, embedded=(Embedded(".data", several, gap=0),), one_segment=True, align=0x200000),
    )
    return [spec.build().data for spec in specs]


def original() -> bytes:
    """The library that every slimmed one of ``slimmed`` comes from."""
    return libraries()[-1]


def slimmed() -> list[bytes]:
    """Slimmed libraries, for several targets."""
    made = []
    with source_of(original()) as source:
        for words in ("sm_86", "sm_90", "sm_80 sm_90"):
            pieces = slim_library(source, Planner(Request(parse_targets(words)))).pieces
            if pieces is not None:
                made.append(b"".join(stream(pieces, source)))
    return made


def wheels() -> list[bytes]:
    """A wheel with a library, and one with what ``--drop`` and loose device code look at."""
    loose = fatbin.payload("sm_90", 64), fatbin.payload("sm_86", 64)
    plenty: dict[str, Member | bytes] = {
        "demo/lib.so": Member(libraries()[-1], 0o755, stored=True),
        "demo/__init__.py": b"import demo.other\n",
        "demo/__pycache__/other.cpython-311.pyc": b"0",
        "demo/include/demo.h": b"#include <cuda.h>\n",
        "demo/libdemo_static.a": b"!<arch>\n",
        "demo/sm_90.cubin": loose[0],
        "demo/sm_86.cubin": loose[1],
        "demo/all.fatbin": containers()[0],
    }
    files: dict[str, Member | bytes] = {"demo/lib.so": libraries()[0], "demo/__init__.py": b"x = 1\n"}
    with tempfile.TemporaryDirectory() as folder:
        return [
            Wheel(one, name="demo", tag="py3-none-any").write(Path(folder)).read_bytes()
            for one in (files, plenty)
        ]


def zips() -> list[bytes]:
    """Small archives: plain, ZIP64, data descriptors, a prefix; and wheels."""
    plain = (zip_bytes.RawMember(b"a.py", b"x = 1\n" * 9), zip_bytes.RawMember(b"b/c.so", bytes(300)))
    wide = (zip_bytes.RawMember(b"a.py", b"x = 1\n" * 9, wide=True), plain[1])
    streamed = (zip_bytes.RawMember(b"a.py", b"x = 1\n" * 9, flags=8, descriptor=4), plain[1])
    return [
        zip_bytes.zip_bytes(plain, comment=b"hello"),
        zip_bytes.zip_bytes(wide, end64={}),
        zip_bytes.zip_bytes(streamed),
        zip_bytes.zip_bytes(plain, prefix=b"#!/bin/sh\n", adjusted=False),
        *wheels(),
    ]


def _package() -> CondaPackage:
    return CondaPackage(
        (
            Item("lib/libdemo.so", libraries()[-1], mode=0o755),
            hardlink("lib/libdemo2.so", "lib/libdemo.so"),
            symlink("lib/libdemo.so.1", "libdemo.so"),
            Item("lib/" + "long/" * 30 + "text.txt", b"hello", pax={"comment": "x"}),
            Item("lib/old.txt", b"gnu" * 200, format=tarfile.GNU_FORMAT),
        )
    )


def condas() -> list[bytes]:
    """A ``.conda`` package."""
    with tempfile.TemporaryDirectory() as folder:
        return [_package().write(Path(folder)).read_bytes()]


def tars() -> list[bytes]:
    """The tar of a ``.tar.bz2`` package."""
    package = _package()
    return [tar([*package.info_items(), *package.items])]


def paths_jsons() -> list[bytes]:
    """A true ``info/paths.json``."""
    with tarfile.open(fileobj=BytesIO(tars()[0])) as archive:
        member = archive.extractfile("info/paths.json")
        assert member is not None
        return [member.read()]


def records() -> list[bytes]:
    """RECORD with quotes and an entry without hash."""
    text = b'demo/__init__.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\r\n"a,b.py",,\r\n'
    return [text + b"demo-1.0.dist-info/RECORD,,\r\n"]


def cubins() -> list[bytes]:
    """Real cubins and PTX."""
    corpus = Path(__file__).parents[1] / "corpus" / "lib" / "plain.so"
    seeds: list[bytes] = []
    with source_of(corpus.read_bytes()) as source:
        for part in read_library(source).device:
            view = source.part(part.section.sh_offset, part.section.sh_size)
            seeds.extend(
                read_payload(view, entry)
                for container in part.tiling.containers
                for entry in container.entries
            )
    return seeds[:4]


def traces() -> list[bytes]:
    """Profiles: Chrome's JSON, and JSON lines."""
    event = {"cat": "kernel", "name": "_Z3addPfS_i", "ph": "X", "args": {"grid": [1, 1, 1]}}
    lines = [{"Name": "void add<float>(float*, int)"}, {"Name": "scale(float*)"}]
    return [
        json.dumps({"schemaVersion": 1, "traceEvents": [event, event | {"name": "other"}]}).encode(),
        "\n".join(map(json.dumps, lines)).encode(),
        json.dumps(lines).encode(),
    ]
