"""``--strip``, ``--embedded`` and ``--lto`` as people run them, and what ``verify`` makes of the result."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from builders import fatbin
from builders.library import CudaLibrary, Embedded
from builders.wheel import Wheel
from integration.memory import Memory
from judges import readelf

SOURCE = Path(__file__).parents[2] / "src"
LIBRARY = "pkg/libdemo.so"
EMBEDDED = tuple(
    fatbin.container([fatbin.entry(word, size=70_000, seed=word)]) for word in ("sm_80", "sm_100", "lto_75")
)
DEVICE = (fatbin.container(["sm_80", "sm_90", "lto_75"]),)
MADE = CudaLibrary(DEVICE, embedded=(Embedded(".ldata", EMBEDDED),), exports=40).build()


def wheelslim(*words: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "COLUMNS": "400"}
    command = [sys.executable, "-m", "wheelslim", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=120)


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return Wheel({LIBRARY: MADE.data, "pkg/__init__.py": b""}).write(tmp_path)


def pruned(wheel: Path, *words: str) -> tuple[Path, dict[str, Any]]:
    """Prune with ``--force``: so little goes from the small wheel that nothing would be written."""
    done = wheelslim("prune", "--arch", "sm_86", wheel, "-o", wheel.parent / "out", "--json", "-f", *words)
    assert done.returncode == 0, done.stderr
    (report,) = json.loads(done.stdout)["artifacts"]
    return Path(report["output"]), report


def library(wheel: Path, tmp_path: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        return Path(archive.extract(LIBRARY, tmp_path / "unpacked"))


def stamp(wheel: Path) -> dict[str, Any]:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith("/wheelslim.json"))
        told: dict[str, Any] = json.loads(archive.read(name))
    return told


def test_strip_takes_the_symbols_and_says_so(wheel: Path, tmp_path: Path) -> None:
    output, report = pruned(wheel, "--strip")
    names = {section.name for section in readelf.sound(library(output, tmp_path)).sections}
    assert ".symtab" not in names
    assert report["libraries"][0]["stripped"] > 0
    assert stamp(output)["strip"] == "all"
    assert wheelslim("verify", wheel, output).returncode == 0


def test_strip_debug_keeps_the_symbols(wheel: Path, tmp_path: Path) -> None:
    output, _ = pruned(wheel, "--strip=debug")
    assert ".symtab" in {section.name for section in readelf.sound(library(output, tmp_path)).sections}


@pytest.mark.parametrize(("words", "emptied"), [((), 1), (("--lto", "none"), 2)])
def test_embedded_device_code_goes_and_verify_accepts_it(
    words: tuple[str, ...], emptied: int, wheel: Path, tmp_path: Path
) -> None:
    output, report = pruned(wheel, "--embedded", *words)
    told = report["libraries"][0]["embedded"]
    assert (told["containers"], told["emptied"]) == (3, emptied)
    assert "try it on your GPU" in report["libraries"][0]["notes"][0]
    memory = Memory(library(output, tmp_path))
    for number, (data, address) in enumerate(zip(EMBEDDED, MADE.embedded[".ldata"], strict=True)):
        goes = number == 1 or (number == 2 and bool(words))
        assert memory.read(address, len(data)) == (bytes(len(data)) if goes else data)
    assert stamp(output)["embedded"] is True
    proved = wheelslim("verify", wheel, output)
    assert proved.returncode == 0, proved.stdout + proved.stderr


def test_what_the_stamp_does_not_say_was_asked_for_is_a_broken_promise(wheel: Path, tmp_path: Path) -> None:
    output, _ = pruned(wheel, "--strip", "--embedded")
    with zipfile.ZipFile(output) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    for key, value, message in (
        ("strip", "none", "section .comment is gone"),
        ("embedded", False, ".ldata has another size"),
    ):
        changed = tmp_path / f"{key}.whl"
        name = next(name for name in content if name.endswith("/wheelslim.json"))
        told = json.dumps(json.loads(content[name]) | {key: value}).encode()
        with zipfile.ZipFile(changed, "w") as archive:
            for member, data in content.items():
                archive.writestr(member, told if member == name else data)
        failed = wheelslim("verify", wheel, changed)
        assert failed.returncode == 1
        assert "host code" in failed.stdout
        assert message in failed.stdout
