"""Run fuzz targets for a time: ``PYTHONPATH=src:tests python -m fuzz.run --seconds 60 [TARGET…]``.

Two engines: ``mutate`` (structure-aware mutations of the seeds, any machine) and ``atheris``
(coverage-guided, if it is installed; one target). An input that crashes, breaks a promise, takes longer
than two seconds or 256 MB is written to ``--findings``, and the exit code is 1. ``--again`` runs what lies
there once more.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import resource
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from fuzz.mutations import mutate
from fuzz.targets import TARGETS
from wheelslim.errors import WheelslimError

if TYPE_CHECKING:
    from fuzz.targets import Target

SLOWEST = 2.0
MEMORY = 256 << 20
HANGING = 20
"""Seconds after which an input is given up."""


class FindingError(Exception):
    """An input that must become a regression test."""


class _HangingError(BaseException):
    """Ends an input that takes far too long; nothing that is fuzzed catches it."""


def _hanging(*_: object) -> None:
    raise _HangingError(f"more than {HANGING} s")


def one(target: Target, data: bytes) -> None:
    """Run one input.

    Raises:
        FindingError: it does not end in a result or a WheelslimError, or takes too long or too much.
    """
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    signal.signal(signal.SIGALRM, _hanging)
    signal.alarm(HANGING)
    started = time.monotonic()
    try:
        target.run(data)
    except WheelslimError:
        pass
    except (Exception, _HangingError) as error:
        raise FindingError(f"{type(error).__name__}: {error}") from error
    finally:
        signal.alarm(0)
    seconds = time.monotonic() - started
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    if seconds > SLOWEST:
        raise FindingError(f"took {seconds:.1f} s")
    if grown > MEMORY:
        raise FindingError(f"took {grown >> 20} MB")


def mutating(target: Target, seconds: float, executions: int, seed: int, findings: Path) -> tuple[int, int]:
    """Mutate seeds, and mutants that were accepted; returns (executions, findings)."""
    rng = random.Random(seed)
    pool = target.seeds()
    for data in pool:
        one(target, data)
    done = bad = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end and done < executions:
        data = mutate(rng.choice(pool), rng)
        done += 1
        try:
            one(target, data)
        except FindingError as error:
            bad += 1
            findings.mkdir(parents=True, exist_ok=True)
            path = findings / f"{target.name}-{hashlib.sha256(data).hexdigest()[:16]}"
            path.write_bytes(data)
            print(f"{target.name}: {error} ({path})", flush=True)
        else:
            if len(pool) < 512 and rng.random() < 0.01:
                pool.append(data)
    return done, bad


def again(target: Target, findings: Path) -> tuple[int, int]:
    """Run the findings of earlier runs; returns (executions, findings)."""
    bad = 0
    paths = sorted(findings.glob(f"{target.name}-*"))
    for path in paths:
        try:
            one(target, path.read_bytes())
        except FindingError as error:
            bad += 1
            print(f"{target.name}: {error} ({path})", flush=True)
    return len(paths), bad


def guided(target: Target, seconds: float, corpus: Path) -> None:
    """Hand over to atheris, which ends the process itself."""
    import atheris

    corpus.mkdir(parents=True, exist_ok=True)
    for data in target.seeds():
        (corpus / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
    atheris.instrument_all()
    options = [f"-max_total_time={int(seconds)}", "-max_len=65536", "-timeout=10", "-rss_limit_mb=1024"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], lambda data: one(target, data))
    atheris.Fuzz()


def main() -> int:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", choices=[[], *TARGETS], help="default: all")
    parser.add_argument("--seconds", type=float, default=60, help="for each target")
    parser.add_argument("--altogether", type=float, help="seconds, shared by all targets")
    parser.add_argument("--executions", type=int, default=1 << 60, help="at most, for each target")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--engine", choices=("mutate", "atheris"), default="mutate")
    parser.add_argument("--again", action="store_true", help="only what lies in --findings")
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"))
    words = parser.parse_args()
    total = faults = 0
    if words.altogether:
        words.seconds = words.altogether / len(words.targets or TARGETS)
    for name in words.targets or TARGETS:
        target = TARGETS[name]
        if words.engine == "atheris":
            guided(target, words.seconds, words.findings / f"corpus-{name}")
        started = time.monotonic()
        if words.again:
            done, bad = again(target, words.findings)
        else:
            done, bad = mutating(target, words.seconds, words.executions, words.seed, words.findings)
        rate = done / (time.monotonic() - started)
        print(
            f"{name}: {done:,} executions, {rate:,.0f} a second, {bad} findings (seed {words.seed})",
            flush=True,
        )
        total += done
        faults += bad
    print(f"{total:,} executions, {faults} findings")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
