"""What tests/builders streams passes for real, too: readelf, cuobjdump, wheel and unzip take it."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

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
        "import re, pathlib; from builders.streamed import StreamedLibrary as L; "
        "from builders.streamed_wheel import write_wheel; "
        f"write_wheel(L(256), pathlib.Path({str(tmp_path)!r})); "
        # Not ru_maxrss: that begins with the peak of the process that started this one.
        "print(re.search(r'VmHWM:\\s*([0-9]+) kB', pathlib.Path('/proc/self/status').read_text())[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert int(done.stdout) < 100 << 10
