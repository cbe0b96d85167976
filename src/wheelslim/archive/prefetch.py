"""Work that runs ahead of its consumer, in order and by a bounded distance."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Executor, Future

Item = TypeVar("Item")
Result = TypeVar("Result")


class Prefetch(Generic[Item, Result]):
    """Calls ``prepare`` for every item on ``pool``, in order, at most ``slots`` of them unreleased.

    A slot is taken when an item starts and is free again after ``release``, which its consumer, or
    ``prepare`` itself, calls once per item. Slots go to the items in order: no item can hold up an
    earlier one.
    """

    def __init__(
        self, items: Iterable[Item], prepare: Callable[[Item], Result], pool: Executor, slots: int
    ) -> None:
        """Get ready; ``start`` begins."""
        self._waiting = deque(items)
        self._prepare = prepare
        self._pool = pool
        self._free = slots
        self._started: dict[Item, Future[Result]] = {}
        self._changed = threading.Condition()

    def start(self) -> None:
        """Start as many items as there are slots."""
        with self._changed:
            while self._free and self._waiting:
                item = self._waiting.popleft()
                self._free -= 1
                self._started[item] = self._pool.submit(self._prepare, item)
            self._changed.notify_all()

    def release(self) -> None:
        """Give one slot back."""
        with self._changed:
            self._free += 1
        self.start()

    def result(self, item: Item) -> Result:
        """Wait for what ``prepare`` returned for ``item``, or raise what it raised."""
        with self._changed:
            self._changed.wait_for(lambda: item in self._started)
            future = self._started.pop(item)
        return future.result()
