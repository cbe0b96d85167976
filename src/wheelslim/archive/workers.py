"""The threads of one run, and how they are told to stop."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Block = TypeVar("Block")


class StoppedError(Exception):
    """Another part of the run failed, so this one need not go on. Never leaves the archive layer."""


def available_cpus() -> int:
    """Count the CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Workers:
    """Thread pools of one run: ``deflate`` and copies, ``ahead`` of the present member, ``behind`` it.

    ``hash`` follows those that run ahead.

    Leaving the context, for whatever reason, stops and awaits all of them.
    """

    def __init__(self, jobs: int, ahead: int) -> None:
        """Make pools of ``jobs`` threads, and of up to ``ahead`` for what runs ahead."""
        self.jobs = max(1, jobs)
        self._stop = threading.Event()
        self.deflate = ThreadPoolExecutor(self.jobs, "deflate")
        self.ahead = ThreadPoolExecutor(min(ahead, self.jobs), "ahead")
        self.hash = ThreadPoolExecutor(ahead, "hash")
        self.behind = ThreadPoolExecutor(1, "behind")

    def checked(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Yield ``blocks``.

        Raises:
            StoppedError: the run has failed elsewhere.
        """
        for block in blocks:
            if self._stop.is_set():
                raise StoppedError
            yield block

    def __enter__(self) -> Workers:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop everything that is not done, and wait for it."""
        self._stop.set()
        for pool in (self.ahead, self.hash, self.deflate, self.behind):
            pool.shutdown(wait=True, cancel_futures=True)
