"""``wheelslim prune``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wheelslim.cli.console import console_color, console_width, echo_error, echo_text
from wheelslim.cli.format_options import check_formats, options_for
from wheelslim.cli.options import (
    Arch,
    CompressionLevel,
    CondaFormat,
    Drop,
    DropGlob,
    DropKernels,
    DryRun,
    EmbeddedOption,
    Exact,
    Force,
    InferenceOnly,
    Jobs,
    Json,
    KeepKernels,
    KernelsUsed,
    Lto,
    LtoOption,
    OutputDir,
    ProfileOption,
    Ptx,
    PtxOption,
    Quiet,
    RecompressOption,
    ScratchDir,
    StripOption,
    Verbose,
    make_drops,
    make_kernel_rules,
    make_library_options,
    make_request,
)
from wheelslim.cli.page_file import Html, check_page, write_page
from wheelslim.cli.progress import progress_bar
from wheelslim.errors import ExitCode, Place, UsageError, WheelslimError

if TYPE_CHECKING:
    from collections.abc import Sequence


def prune(
    context: typer.Context,
    artifacts: Annotated[list[Path], typer.Argument(help="Wheels, conda packages or libraries.")],
    arch: Arch,
    ptx: PtxOption = Ptx.AUTO,
    lto: LtoOption = Lto.ALL,
    exact: Exact = False,
    output_dir: OutputDir = Path("slim"),
    force: Force = False,
    dry_run: DryRun = False,
    verify: Annotated[bool, typer.Option("--verify/--no-verify", help="Prove the result.")] = True,
    build_tag: Annotated[
        bool, typer.Option("--build-tag/--no-build-tag", help="Name the targets in the wheel's file name.")
    ] = True,
    compression: Annotated[
        CompressionLevel, typer.Option(help="Speed against size of the wheel.")
    ] = CompressionLevel.DEFAULT,
    check_input: Annotated[
        bool, typer.Option("--check-input", help="Read and check members that do not change, too.")
    ] = False,
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
    conda_format: Annotated[
        CondaFormat | None, typer.Option("--format", help="Convert a conda package.", show_default=False)
    ] = None,
    compression_level: Annotated[
        int | None,
        typer.Option(min=1, max=22, help="zstd level of a conda package; default: 19.", show_default=False),
    ] = None,
    build_suffix: Annotated[
        str | None, typer.Option(help="Add to the build string of a conda package.", show_default=False)
    ] = None,
    jobs: Jobs = None,
    scratch_dir: ScratchDir = None,
    html: Html = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Keep the device code that the targets load, and write slimmed copies."""
    from wheelslim.archive.artifact import ArtifactKind
    from wheelslim.archive.deflate import Compression
    from wheelslim.pipeline import PruneOptions
    from wheelslim.pipeline import prune as prune_artifact
    from wheelslim.report.json import prune_json
    from wheelslim.report.prune_page import prune_page
    from wheelslim.report.text import render_prune_text

    check_page(html, artifacts, output_dir)
    check_formats(context, artifacts)
    options = PruneOptions(
        request=make_request(arch, ptx, exact, lto),
        drop=make_drops(drop, drop_glob, profile),
        kernels=make_kernel_rules(drop_kernels, keep_kernels, inference_only, kernels_used),
        recompress=recompress is not None,
        library=make_library_options(strip, profile, embedded=embedded),
        output_dir=output_dir,
        force=force,
        dry_run=dry_run,
        verify=verify,
        build_tag=build_tag,
        compression=Compression(compression.value),
        conda_format=None if conda_format is None else ArtifactKind(conda_format.value),
        compression_level=compression_level,
        build_suffix=build_suffix,
        check_input=check_input,
        jobs=jobs,
        scratch_dir=scratch_dir,
    )
    if not dry_run:
        _refuse_equal_names(artifacts)
    worst = ExitCode.DONE
    reports = []
    keep = {path.resolve() for path in artifacts}
    for path in artifacts:
        try:
            size = path.stat().st_size if path.is_file() else 0
            with progress_bar(path.name, size, quiet or as_json) as advance:
                own = replace(options_for(path, options), keep=frozenset(keep - {path.resolve()}))
                report = prune_artifact(path, own, advance)
        except WheelslimError as error:
            echo_error(error)
            worst = max(worst, error.exit_code)
            continue
        reports.append(report)
        if report.output is not None:
            keep.add(Path(report.output).resolve())
        if html is not None:
            write_page(html, prune_page(report))
        if not as_json and not quiet:
            text = render_prune_text(report, console_width(), verbose=verbose, color=console_color())
            echo_text(text)
    if as_json:
        typer.echo(json.dumps({"artifacts": [prune_json(report) for report in reports]}, indent=2))
    if worst:
        raise typer.Exit(worst)


def _refuse_equal_names(artifacts: Sequence[Path]) -> None:
    """All outputs lie in one directory."""
    first: dict[str, Path] = {}
    for path in artifacts:
        if first.setdefault(path.name, path) is not path:
            raise UsageError(
                f"{first[path.name]} has the same name, and so would their outputs",
                place=Place(artifact=str(path)),
                hint="Give them to commands of their own, with another --output-dir each",
            )
