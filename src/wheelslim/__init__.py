"""Slim CUDA wheels, conda packages and environments to the GPUs that you run (docs/api.md).

Importing the package loads none of its parts; each is loaded where it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelslim import errors
from wheelslim.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

    from wheelslim.coverage import Check, check
    from wheelslim.devices import TargetsGiven
    from wheelslim.explanation import Explanation, explain
    from wheelslim.inspection import Inspection, inspect
    from wheelslim.report.model import PruneReport
    from wheelslim.targets import Target, parse_targets
    from wheelslim.verification import Verification, verify

__all__ = [
    "Check",
    "Explanation",
    "Inspection",
    "PruneReport",
    "Target",
    "Verification",
    "__version__",
    "check",
    "errors",
    "explain",
    "inspect",
    "parse_targets",
    "prune",
    "verify",
]

__version__ = VERSION


def prune(
    path: str | PathLike[str],
    targets: TargetsGiven,
    *,
    output_dir: str | PathLike[str] = "slim",
    ptx: str = "auto",
    exact: bool = False,
    strip: str = "none",
    drop: str = "",
    force: bool = False,
    dry_run: bool = False,
    progress: Callable[[int], None] | None = None,
) -> PruneReport:
    """Slim a wheel, a conda package or a library for ``targets`` into ``output_dir``.

    The other words are those of the command line (docs/cli.md): ``ptx`` is ``auto``, ``all`` or
    ``none``; ``strip`` is ``none``, ``debug`` or ``all``; ``drop`` names groups of files, comma-separated.
    ``progress`` is called with numbers of input bytes done.

    Raises:
        WheelslimError: whatever is wrong, with its place; no output exists then.
    """
    from pathlib import Path

    from wheelslim.devices import targets_of
    from wheelslim.elf.strip import StripMode
    from wheelslim.groups.rules import make_drop_request
    from wheelslim.pipeline import PruneOptions
    from wheelslim.pipeline import prune as prune_artifact
    from wheelslim.plan import PtxPolicy, Request
    from wheelslim.slim import LibraryOptions
    from wheelslim.words import value_of

    options = PruneOptions(
        request=Request(targets_of(targets), value_of(PtxPolicy, ptx, "ptx"), exact),
        library=LibraryOptions(strip=value_of(StripMode, strip, "strip")),
        drop=make_drop_request(drop, (), None),
        output_dir=Path(output_dir),
        force=force,
        dry_run=dry_run,
    )
    return prune_artifact(Path(path), options, progress)


def __getattr__(name: str) -> object:
    """Load a public name where it is first used."""
    if name in ("check", "Check"):
        from wheelslim import coverage

        return getattr(coverage, name)
    if name in ("explain", "Explanation"):
        from wheelslim import explanation

        return getattr(explanation, name)
    if name in ("inspect", "Inspection"):
        from wheelslim import inspection

        return getattr(inspection, name)
    if name in ("verify", "Verification"):
        from wheelslim import verification

        return getattr(verification, name)
    if name in ("Target", "parse_targets"):
        from wheelslim import targets

        return getattr(targets, name)
    if name == "PruneReport":
        from wheelslim.report.model import PruneReport

        return PruneReport
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
