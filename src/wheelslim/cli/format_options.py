"""Options of ``prune`` that one format of artifact has and the others do not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from wheelslim.errors import UsageError, WheelslimError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import typer

    from wheelslim.edition import PruneOptions

_WHEELS = "wheels"
_CONDA = "conda packages"
_FOR = {
    "build_tag": ("--no-build-tag", _WHEELS),
    "compression": ("--compression", _WHEELS),
    "check_input": ("--check-input", _WHEELS),
    "conda_format": ("--format", _CONDA),
    "compression_level": ("--compression-level", _CONDA),
    "build_suffix": ("--build-suffix", _CONDA),
}
"""The parameter, the option that people write, and what it is for."""

_OTHER = {
    "compression": "--compression-level is that of conda packages",
    "compression_level": "--compression fast, default or max is that of wheels",
    "build_tag": "--build-suffix is what names the targets of a conda package",
    "build_suffix": "a wheel's build tag names the targets by itself",
}


def check_formats(context: typer.Context, artifacts: Sequence[Path]) -> None:
    """Refuse an option that no artifact of the run has.

    Raises:
        UsageError: one was written, and is for a format that is not among ``artifacts``.
    """
    given = [name for name in _FOR if _is_written(context, name)]
    if not given:
        return
    present = {_format_of(path) for path in artifacts}
    if None in present:  # It cannot be read: its own error says more.
        return
    for name in given:
        option, format_name = _FOR[name]
        if format_name not in present:
            raise UsageError(
                f"{option} is for {format_name}, and none is given", hint=_hint(name, format_name, present)
            )


def options_for(path: Path, options: PruneOptions) -> PruneOptions:
    """Leave out what only conda packages have, where ``path`` is another artifact of a mixed run."""
    if not (options.conda_format or options.build_suffix) or _format_of(path) == _CONDA:
        return options
    return replace(options, conda_format=None, build_suffix=None)


def _is_written(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _format_of(path: Path) -> str | None:
    """Return what options for formats call it; None where it cannot be read."""
    from wheelslim.archive.opener import Family, family_of

    try:
        family = family_of(path)
    except WheelslimError:
        return None
    return {Family.WHEEL: _WHEELS, Family.CONDA: _CONDA}.get(family, "other files")


def _hint(name: str, format_name: str, present: set[str | None]) -> str | None:
    other = _WHEELS if format_name == _CONDA else _CONDA
    return _OTHER.get(name) if other in present else None
