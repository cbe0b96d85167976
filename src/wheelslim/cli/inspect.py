"""``wheelslim inspect``."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wheelslim.cli.console import console_color, console_width, echo_error, echo_json, echo_text
from wheelslim.cli.options import Json, Ptx, Verbose, make_request
from wheelslim.cli.page_file import Html, check_page, write_page
from wheelslim.errors import ExitCode, WheelslimError

if TYPE_CHECKING:
    from wheelslim.estimate import Estimate
    from wheelslim.inspection import Inspection
    from wheelslim.plan import Request
    from wheelslim.report.page import Page


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
    html: Html = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show what is inside: sizes by library, section and architecture, and what a target would save."""
    from wheelslim.estimate import estimate
    from wheelslim.inspection import survey
    from wheelslim.report.inspection_json import inspection_json
    from wheelslim.report.inspection_text import Grouping, render_inspection_text

    check_page(html, artifacts)
    worst = ExitCode.DONE
    values = []
    for path in artifacts:
        try:
            inspection = survey(path, links=html is not None)
        except WheelslimError as error:
            echo_error(error)
            worst = max(worst, error.exit_code)
            continue
        requests = _requests(inspection, arch)
        estimates = [estimate(inspection, request) for request in requests]
        if html is not None:
            write_page(html, _page(inspection, estimates, requests, pruned=bool(arch)))
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


def _requests(inspection: Inspection, arch: list[str] | None) -> list[Request]:
    """One request for the devices named, or one for each that the artifact has code for."""
    from wheelslim.estimate import likely_targets
    from wheelslim.plan import Request

    if arch:
        return [make_request(arch, Ptx.AUTO, exact=False)]
    return [Request((target,)) for target in likely_targets(inspection)]


def _page(
    inspection: Inspection, estimates: list[Estimate], requests: list[Request], *, pruned: bool
) -> Page:
    from wheelslim.coverage import check_inspection
    from wheelslim.report.inspection_page import inspection_page

    check = check_inspection(inspection, [device for request in requests for device in request.devices])
    return inspection_page(inspection, estimates, check, requests[0] if pruned else None)
