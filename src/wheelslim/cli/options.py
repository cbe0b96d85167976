"""Options that several commands share, and how their words become values."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from wheelslim.plan import Request


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


def make_request(arch: list[str], ptx: Ptx, exact: bool) -> Request:
    """Parse the targets.

    Raises:
        TargetError: a word is unknown.
    """
    from wheelslim.plan import PtxPolicy, Request
    from wheelslim.targets import parse_targets

    return Request(parse_targets(arch), PtxPolicy(ptx.value), exact)
