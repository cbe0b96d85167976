"""``--html``: a report written as a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wheelslim.report.page import Page

Html = Annotated[
    Path | None, typer.Option("--html", help="Also write a page to look at.", show_default=False)
]


def check_one_page(html: Path | None, artifacts: Sequence[Path]) -> None:
    """Refuse ``--html`` for several artifacts at once.

    Raises:
        typer.BadParameter: there are several.
    """
    if html is not None and len(artifacts) > 1:
        raise typer.BadParameter("a page shows one artifact", param_hint="--html")


def write_page(html: Path, page: Page) -> None:
    """Write ``page`` to ``html``, in place of what is there, whole or not at all.

    Raises:
        StorageError: the operating system refuses.
    """
    from wheelslim.archive.output import atomic_output
    from wheelslim.archive.storage import storage_errors
    from wheelslim.report.html import render_page

    text = render_page(page)
    with atomic_output(html, force=True) as temporary, storage_errors(html):
        temporary.write_text(text, encoding="utf-8", newline="\n")
