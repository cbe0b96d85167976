"""The demo does what its README says, and its result is a wheel that works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from judges import installers, readelf

if TYPE_CHECKING:
    from judges.cuobjdump import Cuobjdump
    from judges.loader import Loader

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A copy of the demo after a run, and what it printed."""
    demo = tmp_path_factory.mktemp("demo") / "demo"
    shutil.copytree(ROOT / "examples" / "demo", demo, ignore=shutil.ignore_patterns("slim", "__pycache__"))
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, str(demo / "demo.py")], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return demo, done.stdout


def slimmed(demo: Path) -> Path:
    return next((demo / "slim").glob("*.whl"))


def test_it_prints_before_and_after(ran: tuple[Path, str]) -> None:
    demo, printed = ran
    before, after = (
        next(line for line in printed.splitlines() if line.startswith(word)) for word in ("before", "after")
    )
    original = next(demo.glob("*.whl"))
    assert f"{original.stat().st_size:,} bytes" in before
    assert f"{slimmed(demo).stat().st_size:,} bytes" in after
    assert slimmed(demo).stat().st_size < original.stat().st_size / 3


def test_the_result_installs_and_loads(ran: tuple[Path, str], loader: Loader, tmp_path: Path) -> None:
    demo, _ = ran
    target = installers.pip_install(slimmed(demo), tmp_path / "installed")
    library = target / "cuda_demo" / "lib" / "libcuda_demo.so"
    readelf.sound(library)
    loaded = loader.load(library, "demo_answer")
    assert loaded.values == {"demo_answer": "42"}
    assert [[entry.sm for entry in call.entries] for call in loaded.registered] == [[86]] * 3


def test_the_result_holds_the_cubins_of_the_original(
    ran: tuple[Path, str], cuobjdump: Cuobjdump, tmp_path: Path
) -> None:
    demo, _ = ran
    found = []
    for number, wheel in enumerate((next(demo.glob("*.whl")), slimmed(demo))):
        tree = installers.wheel_unpack(wheel, tmp_path / str(number))
        found.append(cuobjdump.cubins(tree / "cuda_demo" / "lib" / "libcuda_demo.so"))
    before, after = found
    assert after == Counter({what: count for what, count in before.items() if what[0] == "sm_86"})
    assert sum(before.values()) == 7 + 3 * 8
