"""``wheelslim wheelhouse``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from wheelslim.cli.console import console_width, echo_text
from wheelslim.cli.options import (
    Arch,
    CompressionLevel,
    Drop,
    DropGlob,
    EmbeddedOption,
    Exact,
    Jobs,
    Json,
    Lto,
    LtoOption,
    ProfileOption,
    Ptx,
    PtxOption,
    Quiet,
    StripOption,
    make_drops,
    make_library_options,
    make_request,
)


def wheelhouse(
    arch: Arch,
    requirements: Annotated[
        list[str] | None, typer.Argument(help="Requirements such as torch==2.14.1.", show_default=False)
    ] = None,
    requirement: Annotated[
        list[Path] | None, typer.Option("--requirement", "-r", help="Requirements file; may be repeated.")
    ] = None,
    output_dir: Annotated[Path, typer.Option("--output-dir", "-o", help="The wheelhouse.")] = Path(
        "wheelhouse"
    ),
    ptx: PtxOption = Ptx.AUTO,
    lto: LtoOption = Lto.ALL,
    exact: Exact = False,
    strip: StripOption = None,
    embedded: EmbeddedOption = False,
    drop: Drop = "",
    drop_glob: DropGlob = None,
    profile: ProfileOption = None,
    compression: Annotated[
        CompressionLevel, typer.Option(help="Speed against size of the wheels.")
    ] = CompressionLevel.DEFAULT,
    index_url: Annotated[str | None, typer.Option(help="As for pip.", show_default=False)] = None,
    extra_index_url: Annotated[list[str] | None, typer.Option(help="As for pip.", show_default=False)] = None,
    find_links: Annotated[list[str] | None, typer.Option(help="As for pip.", show_default=False)] = None,
    python_version: Annotated[
        str | None, typer.Option(help="Of the machine that the wheels are for.", show_default=False)
    ] = None,
    platform: Annotated[
        list[str] | None, typer.Option(help="Of the machine that the wheels are for.", show_default=False)
    ] = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Slim all wheels anew.")] = False,
    jobs: Jobs = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Download what a requirements file needs, slim each wheel, and index the result."""
    from wheelslim.archive.deflate import Compression
    from wheelslim.archive.storage import storage_errors
    from wheelslim.pipeline import PruneOptions
    from wheelslim.wheelhouse.account import wheelhouse_json, wheelhouse_text
    from wheelslim.wheelhouse.pip import Requirements
    from wheelslim.wheelhouse.story import WheelhouseOptions, build_wheelhouse

    if not requirements and not requirement:
        raise typer.BadParameter("give requirements, or a file of them with -r", param_hint="requirements")
    for word in requirements or ():
        if word.startswith("-"):
            raise typer.BadParameter(f"{word} is no requirement", param_hint="requirements")
    for file in requirement or ():
        with storage_errors(file):
            file.stat()
    options = WheelhouseOptions(
        Requirements(
            files=tuple(requirement or ()),
            words=tuple(requirements or ()),
            index_url=index_url,
            extra_index_urls=tuple(extra_index_url or ()),
            find_links=tuple(find_links or ()),
            python_version=python_version,
            platforms=tuple(platform or ()),
        ),
        PruneOptions(
            request=make_request(arch, ptx, exact, lto),
            library=make_library_options(strip, profile, embedded=embedded),
            drop=make_drops(drop, drop_glob, profile),
            output_dir=output_dir,
            force=force,
            compression=Compression(compression.value),
            jobs=jobs,
        ),
    )

    def say(line: str) -> None:
        if not quiet:
            typer.echo(f"wheelslim: {line}", err=True)

    report = build_wheelhouse(options, say)
    if as_json:
        typer.echo(json.dumps(wheelhouse_json(report), indent=2))
    elif not quiet:
        echo_text(wheelhouse_text(report, console_width()))
