"""``wheelslim verify``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wheelslim.cli.console import console_color, console_width, echo_json, echo_text
from wheelslim.cli.options import Json, Quiet
from wheelslim.errors import ExitCode


def verify(
    original: Annotated[Path, typer.Argument(help="The wheel, package, directory or library as it was.")],
    slimmed: Annotated[Path, typer.Argument(help="The slimmed one, whoever made it.")],
    arch: Annotated[
        list[str] | None,
        typer.Option(
            "--arch",
            "-a",
            help="The devices that must run as before; default: those in wheelslim.json.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Prove that a slimmed copy keeps every promise; exit 1 with the place where it does not."""
    from wheelslim.report.verification_json import verification_json
    from wheelslim.report.verification_text import render_verification_text
    from wheelslim.verification import verify as verify_artifacts

    result = verify_artifacts(original, slimmed, arch or None)
    if as_json:
        echo_json([verification_json(result)], several=False)
    elif not quiet:
        echo_text(render_verification_text(result, console_width(), color=console_color()))
    if not result.holds:
        raise typer.Exit(ExitCode.CHECK_FAILED)
