"""``wheelslim check``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wheelslim.cli.console import console_color, console_width, echo_error, echo_json, echo_text
from wheelslim.cli.options import Arch, Json, Quiet, Verbose
from wheelslim.errors import ExitCode, WheelslimError


def check(
    artifacts: Annotated[
        list[Path], typer.Argument(help="Wheels, conda packages, directories, libraries, fatbins.")
    ],
    arch: Arch,
    strict: Annotated[
        bool, typer.Option("--strict", help="Also fail for single containers without code for a target.")
    ] = False,
    ignore: Annotated[
        list[str] | None,
        typer.Option("--ignore", help="Libraries that do not count (a glob); repeat it.", show_default=False),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Check that the targets are covered; exit 1 if a library has nothing for one, or none is there."""
    from wheelslim.coverage import check as check_artifact
    from wheelslim.report.coverage_json import check_json
    from wheelslim.report.coverage_text import render_check_text
    from wheelslim.targets import parse_targets

    targets = parse_targets(arch)
    worst = ExitCode.DONE
    found_code = False
    values = []
    for path in artifacts:
        try:
            result = check_artifact(path, targets, strict=strict, ignore=ignore or ())
        except WheelslimError as error:
            echo_error(error)
            worst = max(worst, error.exit_code)
            continue
        found_code = found_code or bool(result.libraries)
        if not result.covered:
            worst = max(worst, ExitCode.CHECK_FAILED)
        if as_json:
            values.append(check_json(result))
        elif not quiet:
            text = render_check_text(result, console_width(), verbose=verbose, color=console_color())
            echo_text(text)
    if as_json:
        echo_json(values, several=len(artifacts) > 1)
    if not found_code and not worst:
        # A wrong path would look like success.
        echo_error("no library with device code was found, so nothing was checked")
        worst = ExitCode.CHECK_FAILED
    if worst:
        raise typer.Exit(worst)
