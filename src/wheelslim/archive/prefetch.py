"""Work that runs ahead of its consumer, in order and by a bounded distance."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Executor, Future

Item = TypeVar("Item")
Result = TypeVar("Result")


class Prefetch(Generic[Item, Result]):
    """Calls ``prepare`` for every item on ``pool``, in order, a few ahead of the consumer.

    At most ``slots`` items are unreleased at a time. ``items`` holds the weight of each, and those
    unreleased weigh as much as the heaviest of all at most. An item starts when the ones before it
    have started, and is released by ``release``, which its consumer, or ``prepare`` itself, calls once:
    no item can hold up an earlier one.
    """

    def __init__(
        self, items: Mapping[Item, int], prepare: Callable[[Item], Result], pool: Executor, slots: int
    ) -> None:
        """Get ready; ``start`` begins."""
        self._weights = dict(items)
        self._waiting = deque(items)
        self._prepare = prepare
        self._pool = pool
        self._free = slots
        self._room = max(items.values(), default=0)
        self._started: dict[Item, Future[Result]] = {}
        self._changed = threading.Condition()

    def start(self) -> None:
        """Start as many items as there are slots and room for."""
        with self._changed:
            while self._free and self._waiting and self._weights[self._waiting[0]] <= self._room:
                item = self._waiting.popleft()
                self._free -= 1
                self._room -= self._weights[item]
                self._started[item] = self._pool.submit(self._prepare, item)
            self._changed.notify_all()

    def release(self, item: Item) -> None:
        """Give the slot and the room of ``item`` back."""
        with self._changed:
            self._free += 1
            self._room += self._weights[item]
        self.start()

    def result(self, item: Item) -> Result:
        """Wait for what ``prepare`` returned for ``item``, or raise what it raised."""
        with self._changed:
            self._changed.wait_for(lambda: item in self._started)
            future = self._started.pop(item)
        return future.result()
