"""Signals become exceptions where those do no harm."""

from __future__ import annotations

import signal
import threading
import time
from typing import TYPE_CHECKING

import pytest

from wheelslim.archive.scratch import named_temporary
from wheelslim.cli.stopping import StoppedError, behind, catch_signals, settle

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def caught() -> Iterator[None]:
    """The handlers in place, and the former ones afterwards."""
    former = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Jobs in the background ignore it.
    catch_signals()
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number, handler in former.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.usefixtures("caught")
def test_a_signal_stops(number: signal.Signals, code: int) -> None:
    with pytest.raises(StoppedError) as stopped:
        signal.raise_signal(number)
    assert stopped.value.exit_code == code


@pytest.mark.usefixtures("caught")
def test_a_signal_that_comes_to_the_importer_waits_until_it_is_done() -> None:
    reached: list[str] = []
    importing = "signal.raise_signal(signal.SIGTERM); reached.append('the end')"
    exec(compile(importing, "<frozen importlib._bootstrap>", "exec"), {"signal": signal, "reached": reached})
    assert reached == ["the end"]
    with pytest.raises(StoppedError) as stopped:
        time.sleep(10)
    assert stopped.value.exit_code == 143


@pytest.mark.usefixtures("caught")
def test_a_signal_is_seen_behind_the_fault_of_a_lock_that_it_met() -> None:
    with pytest.raises(RuntimeError) as fault:
        _release_twice()
    stopped = behind(fault.value)
    assert stopped is not None
    assert stopped.exit_code == 143
    assert behind(RuntimeError("another")) is None


def _release_twice() -> None:
    lock = threading.Lock()
    with lock:
        lock.release()
        signal.raise_signal(signal.SIGTERM)


@pytest.mark.usefixtures("caught")
def test_nothing_comes_any_more_at_the_end() -> None:
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    settle()
    signal.raise_signal(signal.SIGINT)
    signal.raise_signal(signal.SIGTERM)
    time.sleep(0.05)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    former = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        catch_signals()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, former)


@pytest.mark.usefixtures("caught")
def test_nothing_is_left_of_a_file_that_nobody_took_care_of(tmp_path: Path) -> None:
    _, path = named_temporary(tmp_path)
    other = tmp_path / "other"
    other.touch()
    settle()
    assert not path.exists()
    assert other.exists()
