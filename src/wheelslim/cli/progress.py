"""A progress bar in bytes, on a terminal only."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def progress_bar(label: str, total: int, quiet: bool) -> Iterator[Callable[[int], None] | None]:
    """Yield what to call with numbers of bytes done, or None where nobody watches."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm

    with tqdm(total=total, desc=label, unit="B", unit_scale=True, unit_divisor=1024, leave=False) as bar:

        def advance(size: int) -> None:
            bar.update(size)

        yield advance
