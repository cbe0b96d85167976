"""NVIDIA's cuobjdump: which device code is in a file?

It comes from PyPI (``nvidia-cuda-cuobjdump``, see tests/real/fetch.py) or from a CUDA toolkit.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from judges.programs import run

_LISTED = re.compile(r"^(ELF|PTX) file +\d+: .*\.\d+\.(sm_\w+)\.(?:cubin|ptx)$", re.MULTILINE)
_FATAL = re.compile(r"^cuobjdump fatal +: (.*?)(?: in '.*')?$", re.MULTILINE)
_NOTHING = "does not contain device code"


@dataclass(frozen=True)
class Cuobjdump:
    """An installed cuobjdump."""

    program: Path

    def listing(self, path: Path) -> Counter[str]:
        """Count ``sm_90a`` (cubins) and ``compute_90a`` (PTX).

        cuobjdump 13.5 reads the a of a cubin inside it, and does not show the f.
        """
        found: Counter[str] = Counter()
        for kind, word in _LISTED.findall(self._run("-lelf", "-lptx", "-all", str(path))):
            found[word if kind == "ELF" else word.replace("sm", "compute")] += 1
        return found

    def order(self, path: Path) -> list[tuple[str, str]]:
        """List ``("ELF", "sm_90a")`` and ``("PTX", "sm_90a")`` as they come: ``.nv_fatbin`` first."""
        return _LISTED.findall(self._run("-lelf", "-lptx", "-all", str(path)))

    def complaint(self, path: Path) -> str:
        """What makes it give up on a file, without the file's name; empty where nothing does."""
        found = _FATAL.search(run([str(self.program), "-lelf", "-all", str(path)]).stderr)
        return found[1] if found else ""

    def cubins(self, path: Path) -> Counter[tuple[str, str]]:
        """Extract all; count (word, SHA-256) of each cubin and PTX, decompressed."""
        found: Counter[tuple[str, str]] = Counter()
        with tempfile.TemporaryDirectory() as directory:
            for option in ("-xelf", "-xptx"):
                self._run(option, "all", "-all", str(path.resolve()), cwd=Path(directory))
            for file in Path(directory).iterdir():
                word = file.name.split(".")[-2]
                word = word if file.suffix == ".cubin" else word.replace("sm", "compute")
                found[word, hashlib.sha256(file.read_bytes()).hexdigest()] += 1
        return found

    def _run(self, *arguments: str, cwd: Path | None = None) -> str:
        done = run([str(self.program), *arguments], cwd=cwd)
        said = done.stdout + done.stderr
        assert done.returncode == 0 or _NOTHING in said, said
        return done.stdout


def find(cache: Path) -> Cuobjdump | None:
    """Find it in ``cache`` (a directory of wheels), unpack it beside them if need be, else on the PATH."""
    found = _cached(cache, "nvidia_cuda_cuobjdump-*x86_64.whl", "cuobjdump")
    on_path = shutil.which("cuobjdump")
    return found or (Cuobjdump(Path(on_path)) if on_path else None)


def find_older(cache: Path) -> Cuobjdump | None:
    """Find that of CUDA 12.4, which reads cubins of CUDA 12.1 that the newer one calls invalid."""
    return _cached(cache, "triton-3.1.0-*x86_64.whl", "cuobjdump-12")


def _cached(cache: Path, pattern: str, name: str) -> Cuobjdump | None:
    unpacked = cache.parent / name
    if not (unpacked / "cuobjdump").exists():
        for wheel in sorted(cache.glob(pattern), reverse=True):
            _unpack(wheel, unpacked)
            break
    return Cuobjdump(unpacked / "cuobjdump") if (unpacked / "cuobjdump").exists() else None


def _unpack(wheel: Path, target: Path) -> None:
    import zipfile

    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith("/bin/cuobjdump"))
        target.mkdir(parents=True, exist_ok=True)
        partial = target / "cuobjdump.part"
        partial.write_bytes(archive.read(name))
    partial.chmod(0o755)
    partial.replace(target / "cuobjdump")
