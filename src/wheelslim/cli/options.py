"""Options that several commands share, and how their words become values."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from wheelslim.groups.rules import DropRequest
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


def make_library_options(strip: Strip | None, profile: str | None) -> LibraryOptions:
    """Join the options about libraries; a profile may strip."""
    from wheelslim.elf.strip import StripMode
    from wheelslim.groups.rules import load_rules
    from wheelslim.slim import LibraryOptions

    if strip is None and profile is not None and load_rules().profiles[profile].strip:
        strip = Strip.ALL
    return LibraryOptions(strip=StripMode.NONE if strip is None else StripMode(strip.value))


def make_request(arch: list[str], ptx: Ptx, exact: bool) -> Request:
    """Parse the targets.

    Raises:
        TargetError: a word is unknown.
    """
    from wheelslim.plan import PtxPolicy, Request
    from wheelslim.targets import parse_targets

    return Request(parse_targets(arch), PtxPolicy(ptx.value), exact)
