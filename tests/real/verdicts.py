"""What the outside judges say of a pruned wheel: one function each, which asserts and returns a few words.

Tests run them one by one; scripts/results.py makes a table of them.
"""

from __future__ import annotations

import filecmp
import json
import shutil
from typing import TYPE_CHECKING

from judges import installers, readelf
from real import device_code, imports, installs
from real.pruned import dist_info, installed_size, members, wheelslim

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from judges.cuobjdump import Cuobjdump
    from judges.readelf import SectionHeader
    from real.pruned import Pruned

RETARGETED = {".nv_fatbin", "__nv_relfatbin", ".nvFatBinSegment", ".rela.dyn", ".relr.dyn", ".dynamic"}
"""Sections whose bytes have to change: device code, and what points at it."""

CUOBJDUMP_CANNOT_READ = {
    ("bitsandbytes", "libbitsandbytes_cuda121.so"),
    ("torch-2.1", "nvfuser_tests"),
    ("torch-2.1", "libtorch_cuda.so"),
    ("torch-2.1", "libtorch_cuda_linalg.so"),
}
"""Made by CUDA 12.1: cuobjdump 13 says "Invalid ELF" of the originals; that of CUDA 12.4 reads them."""

BOOKS = ("RECORD", "WHEEL", "wheelslim.json")


def by_unzip(pruned: Pruned) -> str:
    """Info-ZIP reads every member."""
    installers.unzip_test(pruned.wheel)
    return "ok"


def by_zipfile(pruned: Pruned) -> str:
    """Members, their order, dates, modes and bytes are those of the original, but for libraries and books."""
    before, after = members(pruned.original), members(pruned.wheel)
    (added,) = [name for name in after if name not in before]
    assert added.endswith(".dist-info/wheelslim.json")
    assert [name for name in after if name != added] == list(before)
    changed = pruned.changed
    reported = {library["path"] for library in pruned.report["libraries"] if library["method"] != "unchanged"}
    assert set(changed) == reported
    for name, old in before.items():
        new = after[name]
        for fact in ("date_time", "external_attr", "create_system", "compress_type", "comment"):
            assert getattr(new, fact) == getattr(old, fact), f"{name}: {fact}"
        if name not in changed and not name.endswith(tuple(f".dist-info/{book}" for book in BOOKS)):
            assert (new.CRC, new.compress_size) == (old.CRC, old.compress_size), name
    assert pruned.wheel.stat().st_size == pruned.report["size"]["after"]
    assert pruned.original.stat().st_size == pruned.report["size"]["before"]
    return f"{len(before) - len(changed):,} members as they were"


def by_wheel_unpack(pruned: Pruned) -> str:
    """``wheel unpack`` checks every hash of RECORD; the sizes are those of the report."""
    tree = pruned.unpacked(pruned.wheel)
    stamps = list(tree.glob("*.dist-info/wheelslim.json"))
    assert len(stamps) == 1
    assert json.loads(stamps[0].read_text())["targets"] == pruned.arch.split(",")
    report = pruned.report["installed_size"]
    assert report["before"] == installed_size(pruned.original)
    on_disk = sum(path.stat().st_size for path in tree.rglob("*") if path.is_file())
    assert report["after"] == installed_size(pruned.wheel) == on_disk
    return "ok"


def by_readelf(pruned: Pruned) -> str:
    """Readelf finds no fault in a changed library, and its host sections hold what they held."""
    tree = pruned.unpacked(pruned.wheel)
    for name in pruned.changed:
        original = pruned.original_library(name)
        after = readelf.sound(tree / name, original)
        _check_sections(original, tree / name, after.sections)
    count = len(pruned.changed)
    return f"{count} {'library' if count == 1 else 'libraries'}"


def _check_sections(original: Path, pruned: Path, after: tuple[SectionHeader, ...]) -> None:
    before = readelf.read(original).sections
    count = len(before)
    assert [(one.name, one.type) for one in after[:count]] == [(one.name, one.type) for one in before]
    # The further parts of a section with a hole, in executables.
    assert {one.name for one in after[count:]} <= set(device_code.SECTIONS)
    with original.open("rb") as old_file, pruned.open("rb") as new_file:
        for old, new in zip(before, after[:count], strict=True):
            if old.name in RETARGETED:
                assert new.address == old.address
                assert new.size <= old.size
                continue
            assert (new.size, new.flags) == (old.size, old.flags), old.name
            # An alignment that the original's own address breaks (cuBLASLt's .ldata) may be put right.
            assert new.align == old.align or old.address % old.align, old.name
            if old.type in ("NULL", "NOBITS") or old.name == ".symtab":  # .symtab names moved sections
                continue
            old_file.seek(old.offset)
            new_file.seek(new.offset)
            left = old.size
            while left > 0:
                step = min(left, 1 << 20)
                assert new_file.read(step) == old_file.read(step), f"{pruned}: {old.name}"
                left -= step


def by_cuobjdump(pruned: Pruned, cuobjdump: Cuobjdump, older: Cuobjdump | None) -> str:
    """Cuobjdump lists exactly the entries that the rule keeps, in order, for every changed library."""
    tree = pruned.unpacked(pruned.wheel)
    listed = 0
    for name in pruned.changed:
        original = pruned.original_library(name)
        device_code.check_entries(original, tree / name, pruned.devices)
        reader = cuobjdump
        if (pruned.key, name.rpartition("/")[2]) in CUOBJDUMP_CANNOT_READ:
            assert cuobjdump.complaint(original) == "Invalid ELF"
            if older is None:
                continue
            reader = older
        listed += device_code.check_listing(original, tree / name, pruned.devices, reader)
    return f"{listed:,} entries"


def by_pip(pruned: Pruned) -> str:
    """Pip takes the pruned wheel for a pin on the version, though the original lies beside it."""
    _check_installed(pruned, installs.pip(pruned))
    return "ok"


def by_uv(pruned: Pruned) -> str:
    """Uv does, too."""
    _check_installed(pruned, installs.uv(pruned))
    return "ok"


def _check_installed(pruned: Pruned, site_packages: Path) -> None:
    tree = pruned.unpacked(pruned.wheel)
    assert len(list(site_packages.glob("*.dist-info/wheelslim.json"))) == 1, "the original was installed"
    assert pruned.changed
    for name in pruned.changed:
        assert filecmp.cmp(site_packages / name, tree / name, shallow=False), name
    shutil.rmtree(site_packages)


def by_import(pruned: Pruned) -> str:
    """The pruned package is imported in the place of the original, and its host code works."""
    return imports.check([pruned])


def by_verify(pruned: Pruned) -> str:
    """``wheelslim verify`` finds every promise kept, the targets read from the wheel's own wheelslim.json."""
    run = wheelslim(pruned.scratch, "verify", str(pruned.original), str(pruned.wheel))
    assert run.exit_code == 0, run.stdout + run.stderr
    assert run.stdout.rstrip().endswith("verified")
    return "ok"


def by_itself(pruned: Pruned) -> str:
    """The build tag says the targets in the file's name and in WHEEL."""
    tag = "0_" + "_".join(word.replace("_", "") for word in pruned.arch.split(","))
    name, version, _ = pruned.original.name.split("-", 2)
    assert pruned.wheel.name == pruned.original.name.replace(f"{name}-{version}-", f"{name}-{version}-{tag}-")
    lines = dist_info(pruned.wheel, "WHEEL").splitlines()
    assert f"Build: {tag}" in lines
    kept = [line for line in lines if not line.startswith("Build:")]
    assert kept == dist_info(pruned.original, "WHEEL").splitlines()
    return tag


JUDGES: dict[str, Callable[[Pruned], str]] = {
    "name": by_itself,
    "verify": by_verify,
    "unzip": by_unzip,
    "zipfile": by_zipfile,
    "wheel unpack": by_wheel_unpack,
    "readelf": by_readelf,
    "pip": by_pip,
    "uv": by_uv,
    "import": by_import,
}
