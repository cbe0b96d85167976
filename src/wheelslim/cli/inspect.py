"""``wheelslim inspect``."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wheelslim.cli.console import console_color, console_width, echo_json, echo_text
from wheelslim.cli.options import Json, Verbose, make_request
from wheelslim.errors import ExitCode, WheelslimError

if TYPE_CHECKING:
    from wheelslim.estimate import Estimate
    from wheelslim.inspection import Inspection


class By(str, Enum):
    """Values of ``--by``."""

    LIBRARY = "library"
    ARCH = "arch"
    SECTION = "section"
    CONTAINER = "container"


def inspect(
    artifacts: Annotated[
        list[Path], typer.Argument(help="Wheels, conda packages, directories, libraries, fatbins, cubins.")
    ],
    arch: Annotated[
        list[str] | None,
        typer.Option(
            "--arch",
            "-a",
            help="Estimate for these devices together; default: for each that it has code for.",
            show_default=False,
        ),
    ] = None,
    by: Annotated[By, typer.Option("--by", help="What a row stands for.")] = By.LIBRARY,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show what is inside: sizes by library, section and architecture, and what a target would save."""
    from wheelslim.inspection import inspect as inspect_artifact
    from wheelslim.report.inspection_json import inspection_json
    from wheelslim.report.inspection_text import Grouping, render_inspection_text

    worst = ExitCode.DONE
    values = []
    for path in artifacts:
        try:
            inspection = inspect_artifact(path)
        except WheelslimError as error:
            typer.echo(f"wheelslim: {error}", err=True)
            worst = max(worst, error.exit_code)
            continue
        estimates = _estimates(inspection, arch)
        if as_json:
            values.append(inspection_json(inspection, estimates))
            continue
        echo_text(
            render_inspection_text(
                inspection,
                estimates,
                console_width(),
                by=Grouping(by.value),
                verbose=verbose,
                color=console_color(),
            )
        )
    if as_json:
        echo_json(values, several=len(artifacts) > 1)
    if worst:
        raise typer.Exit(worst)


def _estimates(inspection: Inspection, arch: list[str] | None) -> list[Estimate]:
    from wheelslim.cli.options import Ptx
    from wheelslim.estimate import estimate, likely_targets
    from wheelslim.plan import Request

    if arch:
        return [estimate(inspection, make_request(arch, Ptx.AUTO, exact=False))]
    return [estimate(inspection, Request((target,))) for target in likely_targets(inspection)]
