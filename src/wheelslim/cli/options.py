"""Options that several commands share, and how their words become values."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from wheelslim.groups.rules import DropRequest
    from wheelslim.kernels.rules import KernelRules
    from wheelslim.plan import Request
    from wheelslim.slim import LibraryOptions


class Ptx(str, Enum):
    """Values of ``--ptx``."""

    AUTO = "auto"
    ALL = "all"
    NONE = "none"


class CondaFormat(str, Enum):
    """Values of ``--format``; those of ``ArtifactKind``."""

    CONDA = "conda"
    TAR_BZ2 = "tar.bz2"


class CompressionLevel(str, Enum):
    """Values of ``--compression``."""

    FAST = "fast"
    DEFAULT = "default"
    MAX = "max"


class Strip(str, Enum):
    """Values of ``--strip``; the bare option means all."""

    ALL = "all"
    DEBUG = "debug"


class Lto(str, Enum):
    """Values of ``--lto``."""

    ALL = "all"
    NONE = "none"


class Recompress(str, Enum):
    """Values of ``--recompress``."""

    ZSTD = "zstd"


Arch = Annotated[
    list[str],
    typer.Option(
        "--arch",
        "-a",
        help="Devices to keep: sm_86, 8.6, a10g, native, 8.6+PTX, compute_90, … (comma-separated).",
        show_default=False,
    ),
]
PtxOption = Annotated[Ptx, typer.Option("--ptx", help="PTX: where a target needs it, all, or none.")]
LtoOption = Annotated[Lto, typer.Option("--lto", help="LTO-IR, for linking at run time: all, or none.")]
Exact = Annotated[bool, typer.Option("--exact", help="Filter literally by name; may lose targets.")]
OutputDir = Annotated[Path, typer.Option("--output-dir", "-o", help="Where the results go.")]
Force = Annotated[bool, typer.Option("--force", "-f", help="Replace an existing output.")]
DryRun = Annotated[bool, typer.Option("--dry-run", "-n", help="Plan and report, write nothing.")]
Json = Annotated[bool, typer.Option("--json", help="Report as JSON on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No report.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="More detail.")]
Jobs = Annotated[
    int | None, typer.Option("--jobs", "-j", min=1, help="Threads; default: the cores.", show_default=False)
]
ScratchDir = Annotated[
    Path | None,
    typer.Option(
        "--scratch-dir", help="For inflated libraries; default: beside the output.", show_default=False
    ),
]


StripOption = Annotated[
    Strip | None,
    typer.Option(
        "--strip", help="Remove symbols and debug sections; =debug keeps .symtab.", show_default=False
    ),
]
Drop = Annotated[
    str, typer.Option("--drop", help="File groups to leave out, comma-separated.", show_default=False)
]
DropGlob = Annotated[
    list[str] | None,
    typer.Option("--drop-glob", help="Leave out files that match; ** spans folders.", show_default=False),
]
ProfileOption = Annotated[
    str | None,
    typer.Option(
        "--profile", help="inference: strip, and drop what a service does not need.", show_default=False
    ),
]


EmbeddedOption = Annotated[
    bool,
    typer.Option(
        "--embedded",
        help="Prune device code outside .nv_fatbin too (cuBLASLt, cuFFT, …); try it on your GPU.",
    ),
]
DropKernels = Annotated[
    list[str] | None,
    typer.Option("--drop-kernels", help="Kernels to leave out: a regular expression.", show_default=False),
]
KeepKernels = Annotated[
    list[str] | None,
    typer.Option("--keep-kernels", help="Kernels to keep, whatever else says.", show_default=False),
]
InferenceOnly = Annotated[
    bool, typer.Option("--inference-only", help="Leave out PyTorch's kernels for training.")
]
KernelsUsed = Annotated[
    Path | None,
    typer.Option(
        "--kernels-used", help="Keep only kernels that a profile lists (PyTorch, nsys).", show_default=False
    ),
]
RecompressOption = Annotated[
    Recompress | None,
    typer.Option(
        "--recompress", help="Store device code as zstd; needs driver 550 or later.", show_default=False
    ),
]


def with_strip_word(words: list[str]) -> list[str]:
    """Write a bare ``--strip`` as ``--strip=all``, and ``--strip debug`` as ``--strip=debug``."""
    values = {value.value for value in Strip}
    result: list[str] = []
    for word in words:
        if result and result[-1] == "--strip":
            result[-1] = f"--strip={word}" if word in values else "--strip=all"
            if word in values:
                continue
        result.append(word)
    if result and result[-1] == "--strip":
        result[-1] = "--strip=all"
    return result


def make_drops(drop: str, globs: list[str] | None, profile: str | None) -> DropRequest:
    """Parse what is to be left out.

    Raises:
        UsageError: a group or a profile is unknown.
    """
    from wheelslim.groups.rules import make_drop_request

    return make_drop_request(drop, tuple(globs or ()), profile)


def make_library_options(
    strip: Strip | None, profile: str | None, *, embedded: bool = False
) -> LibraryOptions:
    """Join the options about libraries; a profile may strip."""
    from wheelslim.elf.strip import StripMode
    from wheelslim.groups.rules import load_rules
    from wheelslim.slim import LibraryOptions

    if strip is None and profile is not None and load_rules().profiles[profile].strip:
        strip = Strip.ALL
    mode = StripMode.NONE if strip is None else StripMode(strip.value)
    return LibraryOptions(strip=mode, embedded=embedded)


def make_kernel_rules(
    drop: list[str] | None, keep: list[str] | None, inference_only: bool, used: Path | None
) -> KernelRules:
    """Join the options about kernels.

    Raises:
        UsageError: a regular expression does not compile, or the profile lists no kernels.
    """
    from wheelslim.kernels.rules import KernelRules, compile_patterns, inference_groups

    profile = None
    if used is not None:
        from wheelslim.kernels.trace import read_used_kernels

        profile = read_used_kernels(used)
    return KernelRules(
        drop=compile_patterns(drop or ()),
        keep=compile_patterns(keep or ()),
        groups=inference_groups() if inference_only else (),
        used=profile,
    )


def make_request(arch: list[str], ptx: Ptx, exact: bool, lto: Lto = Lto.ALL) -> Request:
    """Parse the targets.

    Raises:
        TargetError: a word is unknown.
    """
    from wheelslim.plan import LtoPolicy, PtxPolicy, Request
    from wheelslim.targets import parse_targets

    return Request(parse_targets(arch), PtxPolicy(ptx.value), exact, LtoPolicy(lto.value))
