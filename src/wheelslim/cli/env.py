"""``wheelslim env``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from wheelslim.cli.console import console_color, console_width, echo_text
from wheelslim.cli.options import (
    Arch,
    Drop,
    DropGlob,
    DropKernels,
    DryRun,
    EmbeddedOption,
    Exact,
    InferenceOnly,
    Jobs,
    Json,
    KeepKernels,
    KernelsUsed,
    Lto,
    LtoOption,
    ProfileOption,
    Ptx,
    PtxOption,
    Quiet,
    RecompressOption,
    StripOption,
    Verbose,
    make_drops,
    make_kernel_rules,
    make_library_options,
    make_request,
)
from wheelslim.cli.page_file import Html, check_page, write_page
from wheelslim.cli.progress import progress_bar
from wheelslim.cli.stopping import StoppedError, settle

_SHOWN = 20


def _tree_path(text: str) -> Path:
    """Parse PATH; no text at all, as an unset variable leaves it, is not the current directory."""
    if not str(text):
        raise typer.BadParameter("the path is empty; '.' is the current directory")
    return Path(text)


def env(
    arch: Arch,
    path: Annotated[
        Path | None,
        typer.Argument(
            help="A virtual environment, site-packages, a conda prefix or any directory; "
            "default: the environment that runs wheelslim.",
            show_default=False,
            parser=_tree_path,
            metavar="PATH",
        ),
    ] = None,
    ptx: PtxOption = Ptx.AUTO,
    lto: LtoOption = Lto.ALL,
    exact: Exact = False,
    package: Annotated[
        list[str] | None,
        typer.Option("--package", "-p", help="Only this package (torch, 'nvidia-*'); may be repeated."),
    ] = None,
    dry_run: DryRun = False,
    verify: Annotated[bool, typer.Option("--verify/--no-verify", help="Prove each result.")] = True,
    strip: StripOption = None,
    embedded: EmbeddedOption = False,
    drop: Drop = "",
    drop_glob: DropGlob = None,
    profile: ProfileOption = None,
    drop_kernels: DropKernels = None,
    keep_kernels: KeepKernels = None,
    inference_only: InferenceOnly = False,
    kernels_used: KernelsUsed = None,
    recompress: RecompressOption = None,
    jobs: Jobs = None,
    html: Html = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Slim an installed environment, or any directory tree, in place."""
    from wheelslim.environment.default import default_root
    from wheelslim.environment.story import EnvironmentOptions, slim_tree
    from wheelslim.report.environment_json import environment_json
    from wheelslim.report.environment_text import render_environment_text
    from wheelslim.report.prune_page import prune_page

    check_page(html)
    root = path or default_root()
    options = EnvironmentOptions(
        request=make_request(arch, ptx, exact, lto),
        library=make_library_options(strip, profile, embedded=embedded),
        drop=make_drops(drop, drop_glob, profile),
        kernels=make_kernel_rules(drop_kernels, keep_kernels, inference_only, kernels_used),
        recompress=recompress is not None,
        packages=tuple(package or ()),
        dry_run=dry_run,
        verify=verify,
        jobs=jobs,
    )
    try:
        with progress_bar(root.name, 0, quiet or as_json) as advance:
            report = slim_tree(root, options, advance)
    except StoppedError as error:
        settle()
        typer.echo("wheelslim: stopped; every library is whole, run again to finish", err=True)
        raise typer.Exit(error.exit_code) from None
    shown = report.passed_over if verbose else report.passed_over[:_SHOWN]
    for one in shown:
        where = "" if one.path in one.reason else f"{one.path}: "
        typer.echo(f"wheelslim: passed over: {where}{one.reason}", err=True)
    if len(shown) < len(report.passed_over):
        more = len(report.passed_over) - len(shown)
        typer.echo(f"wheelslim: passed over {more} more (-v lists them)", err=True)
    if html is not None:
        write_page(html, prune_page(report.prune))
    if as_json:
        typer.echo(json.dumps(environment_json(report), indent=2))
    elif not quiet:
        echo_text(render_environment_text(report, console_width(), verbose=verbose, color=console_color()))
    if report.exit_code:
        raise typer.Exit(report.exit_code)
