"""``wheelslim explain``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wheelslim.cli.console import console_color, console_width, echo_json, echo_text
from wheelslim.cli.options import Arch, Exact, Json, Ptx, PtxOption, Verbose


def explain(
    path: Annotated[
        Path, typer.Argument(metavar="LIBRARY", help="A library, or an artifact that holds one.")
    ],
    arch: Arch,
    library: Annotated[
        str | None,
        typer.Option("--library", help="Which library of the artifact (a glob).", show_default=False),
    ] = None,
    container: Annotated[
        int | None, typer.Option("--container", min=0, help="Only this one, by number.", show_default=False)
    ] = None,
    wrapper: Annotated[
        str | None,
        typer.Option(
            "--wrapper", help="Only the one that the wrapper at this address names.", show_default=False
        ),
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(
            "--kernel",
            help="Only those with a kernel of this name (a regular expression).",
            show_default=False,
        ),
    ] = None,
    kernels: Annotated[bool, typer.Option("--kernels", help="Name the kernels of every container.")] = False,
    ptx: PtxOption = Ptx.AUTO,
    exact: Exact = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Say which entry of each container the targets run, and by which rule, before and after pruning."""
    from wheelslim.explanation import explain as explain_library
    from wheelslim.report.explanation_json import explanation_json
    from wheelslim.report.explanation_text import render_explanation_text

    explanation = explain_library(
        path,
        arch,
        library=library,
        container=container,
        wrapper=None if wrapper is None else _address(wrapper),
        kernel=kernel,
        name_kernels=kernels,
        ptx=ptx.value,
        exact=exact,
    )
    if as_json:
        echo_json([explanation_json(explanation)], several=False)
    else:
        text = render_explanation_text(explanation, console_width(), verbose=verbose, color=console_color())
        echo_text(text)


def _address(word: str) -> int:
    try:
        return int(word, 16)
    except ValueError:
        raise typer.BadParameter("no address such as 0x4fe010", param_hint="--wrapper") from None
