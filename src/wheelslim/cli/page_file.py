"""``--html``: a report written as a page."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wheelslim.errors import Place, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wheelslim.report.page import Page

Html = Annotated[
    Path | None, typer.Option("--html", help="Also write a page to look at.", show_default=False)
]


_ADVICE = "Give --html a new name, or that of an earlier page"
_PAGE_START = b"<!doctype html>"


def check_page(html: Path | None, artifacts: Sequence[Path] = (), output_dir: Path | None = None) -> None:
    """Refuse ``--html`` before any work: for several artifacts at once, or in place of what is no page.

    ``output_dir`` is where the slimmed copy of the artifact will lie.

    Raises:
        typer.BadParameter: there are several.
        UsageError: something other than an earlier page has the path, or will have it.
        StorageError: the operating system refuses.
    """
    if html is None:
        return
    if len(artifacts) > 1:
        raise typer.BadParameter("a page shows one artifact", param_hint="--html")
    _refuse_other_files(html)
    beside_output = output_dir is not None and html.parent.resolve() == output_dir.resolve()
    if beside_output and any(html.suffix == path.suffix for path in artifacts):
        raise UsageError("a slimmed copy may get this name", place=_place(html), hint=_ADVICE)


def write_page(html: Path, page: Page) -> None:
    """Write ``page`` to ``html``, in place of an earlier page, whole or not at all.

    Raises:
        UsageError: something other than an earlier page has the path.
        StorageError: the operating system refuses.
    """
    from wheelslim.archive.output import atomic_output
    from wheelslim.archive.storage import storage_errors
    from wheelslim.report.html import render_page

    content = render_page(page).encode("utf-8", "backslashreplace")  # Names of files need be no text.
    _refuse_other_files(html)
    final = html.resolve() if html.is_symlink() else html
    with atomic_output(final, force=True) as temporary, storage_errors(html):
        temporary.write_bytes(content)


def _refuse_other_files(html: Path) -> None:
    """Only what is absent, or begins as a page does, may be replaced; links count as what they lead to."""
    from wheelslim.archive.storage import storage_errors

    with storage_errors(html):
        try:
            mode = html.stat().st_mode
        except FileNotFoundError:
            if not html.is_symlink():
                return
            is_page = False
        else:
            is_page = stat.S_ISREG(mode) and _begins_as_page(html)
    if not is_page:
        raise UsageError("this exists and is no HTML page", place=_place(html), hint=_ADVICE)


def _begins_as_page(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_PAGE_START)).lower() == _PAGE_START


def _place(html: Path) -> Place:
    return Place(artifact=str(html))
