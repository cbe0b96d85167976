"""What tests/builders streams passes for real, too: readelf, cuobjdump, wheel and unzip take it."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.child import Step, cost_of
from builders.streamed import StreamedLibrary
from builders.streamed_wheel import write_wheel
from judges import installers, readelf

if TYPE_CHECKING:
    from judges.cuobjdump import Cuobjdump

SMALL = StreamedLibrary(30, payload=1 << 15, host=3 << 20, relocations=5000)


def test_readelf_and_cuobjdump_take_a_streamed_library(tmp_path: Path, cuobjdump: Cuobjdump) -> None:
    path = SMALL.write(tmp_path / "lib.so")
    assert path.stat().st_size == SMALL.size
    sound = readelf.sound(path)
    assert sound.section(".nv_fatbin").size == 30 * SMALL.container_size
    assert sound.section(".rela.dyn").size == 5030 * 24
    assert cuobjdump.listing(path) == Counter(dict.fromkeys(SMALL.words, 30))


def test_wheel_and_unzip_take_a_streamed_wheel(tmp_path: Path) -> None:
    wheel = write_wheel(SMALL, tmp_path)
    installers.unzip_test(wheel)
    unpacked = installers.wheel_unpack(wheel, tmp_path / "unpacked")
    written = SMALL.write(tmp_path / "lib.so").read_bytes()
    assert (unpacked / "synthetic/libsynthetic.so").read_bytes() == written
    cubins, host = 30 * 4 * (1 << 15), 3 << 20
    assert 0.97 * cubins + 0.2 * host < wheel.stat().st_size < cubins + 0.6 * host


def test_a_streamed_wheel_of_a_quarter_gibibyte_needs_little_memory(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys\n"
        "from builders.streamed import StreamedLibrary\n"
        "from builders.streamed_wheel import write_wheel\n"
        "write_wheel(StreamedLibrary(256), pathlib.Path(sys.argv[1]))\n"
    )
    step = Step((sys.executable, "-c", code, str(tmp_path)), tmp_path)
    cost = cost_of([step], {"PYTHONPATH": str(Path(__file__).parents[1])}, tmp_path / "log")
    assert cost.peak < 100 << 20
