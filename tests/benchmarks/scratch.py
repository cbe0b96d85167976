"""How much disk a running command takes beside its input and its output."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

_TICK = 0.01
_BLOCK = 512
"""``st_blocks`` counts these, whatever the file system."""


class ScratchWatch:
    """Looks at ``directory`` again and again while commands run, and keeps the largest sum.

    Files in it count, but those below ``output``; so do files of the same file system that have no
    name any more but that a process of the command still holds open. Looking takes time itself, so a
    run that is watched is not one that is timed.
    """

    def __init__(self, directory: Path, output: Path) -> None:
        """Get ready to watch."""
        self._directory = directory
        self._output = output
        self._device = directory.stat().st_dev
        self._child = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.peak = 0

    def follow(self, child: int) -> None:
        """Look at the open files of process ``child`` and of its children from now on."""
        self._child = child

    def __enter__(self) -> ScratchWatch:
        """Start."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(_TICK):
            self.peak = max(self.peak, self._named(self._directory) + self._nameless())

    def _named(self, directory: Path) -> int:
        total = 0
        with suppress(OSError), os.scandir(directory) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        total += 0 if Path(entry.path) == self._output else self._named(Path(entry.path))
                    else:
                        total += entry.stat(follow_symlinks=False).st_blocks * _BLOCK
        return total

    def _nameless(self) -> int:
        sizes: dict[int, int] = {}
        for process in _family(self._child) if self._child else ():
            with suppress(OSError), os.scandir(f"/proc/{process}/fd") as descriptors:
                for descriptor in descriptors:
                    with suppress(OSError):
                        status = Path(descriptor.path).stat()
                        if status.st_dev == self._device and not status.st_nlink:
                            sizes[status.st_ino] = status.st_blocks * _BLOCK
        return sum(sizes.values())


def _family(process: int) -> list[int]:
    """The process and its descendants."""
    found = [process]
    with suppress(OSError):
        for child in Path(f"/proc/{process}/task/{process}/children").read_text().split():
            found.extend(_family(int(child)))
    return found
