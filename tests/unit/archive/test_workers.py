"""What runs ahead and behind: order, bounds, and stopping."""

from __future__ import annotations

import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from wheelslim.archive.growing import GrowingRange
from wheelslim.archive.prefetch import Prefetch
from wheelslim.archive.workers import StoppedError, Workers, available_cpus

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_slots_bound_what_is_unreleased_and_no_order_of_release_blocks(slots: int) -> None:
    alive = 0
    most = 0
    lock = threading.Lock()
    dice = random.Random(slots)

    def prepare(item: int) -> int:
        nonlocal alive, most
        with lock:
            alive += 1
            most = max(most, alive)
        time.sleep(dice.random() / 500)
        if item % 3 == 0:  # given back at once, as a member that stays unchanged
            release(item)
        return item * item

    def release(item: int) -> None:
        nonlocal alive
        with lock:
            alive -= 1
        prefetch.release(item)

    with ThreadPoolExecutor(3) as pool, ThreadPoolExecutor(1) as behind:
        prefetch = Prefetch(dict.fromkeys(range(60), 0), prepare, pool, slots)
        prefetch.start()
        for item in range(60):
            assert prefetch.result(item) == item * item
            if item % 3:
                behind.submit(release, item)
    assert most <= slots
    assert alive == 0


@pytest.mark.parametrize("weights", [(5, 5, 1, 4, 0, 0, 5, 2, 2), (1, 1, 9, 1), (0, 0), (3,)])
def test_what_is_unreleased_weighs_no_more_than_the_heaviest(weights: tuple[int, ...]) -> None:
    alive: dict[int, int] = {}
    most: list[tuple[int, int]] = []
    lock = threading.Lock()

    def prepare(item: int) -> int:
        with lock:
            alive[item] = weights[item]
            most.append((sum(alive.values()), len(alive)))
        return item

    with ThreadPoolExecutor(4) as pool:
        prefetch = Prefetch(dict(enumerate(weights)), prepare, pool, 3)
        prefetch.start()
        for item in range(len(weights)):
            assert prefetch.result(item) == item
            with lock:
                del alive[item]
            prefetch.release(item)
    assert max(weight for weight, _ in most) == max(weights)
    assert max(count for _, count in most) <= 3


def test_an_error_in_preparation_reaches_the_consumer() -> None:
    def prepare(item: int) -> int:
        raise ValueError(str(item))

    with ThreadPoolExecutor(1) as pool:
        prefetch = Prefetch({7: 1}, prepare, pool, 1)
        prefetch.start()
        with pytest.raises(ValueError, match="7"):
            prefetch.result(7)


def test_a_reader_follows_the_writer(tmp_path: Path) -> None:
    data = random.Random(5).randbytes(2_000_000)
    fd = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    written = GrowingRange(fd)
    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(lambda: b"".join(written.blocks()))
        at = 0
        for size in (1, 300_000, 5, 700_000, 999_994):
            os.pwrite(fd, data[at : at + size], 100 + at)
            written.grew(100 + at, size)
            at += size
        assert not reader.done()
        written.end()
        assert reader.result(10) == data
    assert written.start == 100
    os.close(fd)


def test_a_reader_of_nothing_ends(tmp_path: Path) -> None:
    written = GrowingRange(os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT))
    written.end()
    assert list(written.blocks()) == []


def test_a_reader_stops_when_the_writer_fails(tmp_path: Path) -> None:
    written = GrowingRange(os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT))
    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(lambda: list(written.blocks()))
        written.end(failed=True)
        with pytest.raises(StoppedError):
            reader.result(10)


def test_leaving_stops_what_still_runs() -> None:
    started = threading.Event()

    def endless() -> None:
        for _ in workers.checked(iter(int, 1)):
            started.set()

    with Workers(2, 2) as workers:
        future = workers.deflate.submit(endless)
        assert started.wait(10)
    with pytest.raises(StoppedError):
        future.result(0)


def test_there_is_at_least_one_cpu() -> None:
    assert 1 <= available_cpus() <= (os.cpu_count() or 1)
