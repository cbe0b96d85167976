"""A copy of the installed CUDA packages with every library pruned; nothing is written to the original.

Whole top-level directories are copied as hard links (copied, where the file system is another one), so that
libraries find each other by their relative paths; the pruned libraries then take the places of the links.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from wheelslim.errors import ElfFormatError, TargetNeverSupportedError
from wheelslim.pipeline import PruneOptions, prune
from wheelslim.plan import Request
from wheelslim.slim import LibraryOptions
from wheelslim.targets import parse_targets

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGES = ("torch", "torchgen", "functorch", "torchvision", "torchvision.libs", "nvidia", "triton", "cupy")
"""Top-level directories of site-packages that hold device code, or that refer to such by relative paths."""

ELF = b"\x7fELF\x02\x01"


@dataclass
class Copy:
    """The copied tree. Sizes in bytes; ``pruned`` and ``left`` name files relative to ``root``."""

    root: Path
    pruned: dict[str, tuple[int, int]] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)

    @property
    def saved(self) -> int:
        """Bytes less."""
        return sum(before - after for before, after in self.pruned.values())


def prune_copy(site_packages: Path, root: Path, arch: str, *, embedded: bool = False) -> Copy:
    """Copy the packages below ``site_packages`` to ``root`` and prune for ``arch``."""
    options = PruneOptions(
        request=Request(parse_targets(arch)),
        library=LibraryOptions(embedded=embedded),
        output_dir=root / ".wheelslim-new",
    )
    copy = Copy(root)
    for name in PACKAGES:
        if (site_packages / name).is_dir():
            shutil.copytree(site_packages / name, root / name, symlinks=True, copy_function=_link)
    for library in list(_libraries(root)):
        where = str(library.relative_to(root))
        try:
            report = prune(library, options)
        except TargetNeverSupportedError:
            copy.left[where] = "no device code for the target"
            continue
        except ElfFormatError as error:
            copy.left[where] = str(error)
            continue
        if report.output is not None and report.size_after is not None:
            shutil.copymode(library, report.output)
            Path(report.output).replace(library)  # the link goes, the original stays
            copy.pruned[where] = (report.size_before, report.size_after)
    shutil.rmtree(options.output_dir, ignore_errors=True)
    return copy


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _libraries(root: Path) -> Iterator[Path]:
    for path in sorted(root.rglob("*.so*")):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(len(ELF)) == ELF:
                    yield path
