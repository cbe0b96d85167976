"""A producer of blocks that runs ahead of its consumer in a thread of its own."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from queue import Empty, Full, Queue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEPTH = 4
"""Blocks held ready. Decompressing then overlaps with hashing and compressing."""

_TICK = 0.05
"""Seconds after which a waiting producer looks whether its consumer has gone."""


@contextmanager
def read_ahead(blocks: Iterator[bytes]) -> Iterator[Iterator[bytes]]:
    """Run ``blocks`` in a thread; yield an iterator over the same blocks.

    What ``blocks`` raises is raised to the consumer, after the blocks before it. The thread has
    ended when the context is left.
    """
    ready: Queue[bytes | BaseException | None] = Queue(_DEPTH)
    gone = threading.Event()

    def hand_over(item: bytes | BaseException | None) -> bool:
        while not gone.is_set():
            try:
                ready.put(item, timeout=_TICK)
            except Full:
                continue
            return True
        return False

    def produce() -> None:
        end: BaseException | None = None
        try:
            for block in blocks:
                if not hand_over(block):
                    return
        except BaseException as error:  # Raised again where it can be handled.
            end = error
        hand_over(end)

    def consume() -> Iterator[bytes]:
        while True:
            item = ready.get()
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item

    thread = threading.Thread(target=produce, name="wheelslim-read-ahead", daemon=True)
    thread.start()
    try:
        yield consume()
    finally:
        gone.set()
        while True:
            try:
                ready.get_nowait()
            except Empty:
                break
        thread.join()
