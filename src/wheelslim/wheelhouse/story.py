"""The story of a wheelhouse: resolve, download what is not there yet, slim, and write index and lock.

While one wheel is downloaded, those before it are slimmed.
"""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock as Mutex
from typing import TYPE_CHECKING, Any

from wheelslim.archive.output import atomic_output
from wheelslim.archive.scratch import PREFIX
from wheelslim.archive.storage import storage_errors
from wheelslim.archive.workers import available_cpus
from wheelslim.environment.lock import locked
from wheelslim.environment.replacement import opened, sha256_of
from wheelslim.errors import ArtifactError, Place, TargetNeverSupportedError, UsageError, WheelslimError
from wheelslim.pipeline import PruneOptions, prune
from wheelslim.wheelhouse.index import METADATA, write_index
from wheelslim.wheelhouse.lock import LOCK, Lock, LockedWheel, write_text
from wheelslim.wheelhouse.pip import Pip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from concurrent.futures import Future

    from wheelslim.report.model import PruneReport
    from wheelslim.wheelhouse.pip import Requirements, Resolved

REQUIREMENTS = "requirements.slim.txt"
_AT_A_TIME = 4
"""Wheels slimmed at once, at most; each takes up to 100 MB of memory."""


@dataclass(frozen=True)
class WheelhouseOptions:
    """What to collect, and how to slim it; ``prune.output_dir`` is the wheelhouse.

    ``prune.force`` slims every wheel anew, and lets a wheelhouse change its targets.
    """

    requirements: Requirements
    prune: PruneOptions


@dataclass(frozen=True)
class WheelhouseReport:
    """What became of each wheel; ``reports`` are by name of those that were slimmed in this run.

    ``kept`` names wheels without device code, or without any for the targets: they are the
    originals. ``reused`` were there already; ``removed`` are files that are no longer needed.
    """

    directory: Path
    wheels: tuple[LockedWheel, ...]
    reports: dict[str, PruneReport] = field(default_factory=dict)
    kept: tuple[str, ...] = ()
    reused: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def requirements(self) -> Path:
        """The file with the hashes of all wheels."""
        return self.directory / REQUIREMENTS


def build_wheelhouse(
    options: WheelhouseOptions, say: Callable[[str], None] = lambda _line: None
) -> WheelhouseReport:
    """Make or renew a wheelhouse; ``say`` is called with a line about each step.

    Wheels that are done are not done again, also after a run that failed; index and requirements are
    written when all are.

    Raises:
        UsageError: the wheelhouse is for other targets or options.
        TargetNeverSupportedError: none of the wheels supports the targets.
        WheelslimError: what went wrong with the first wheel that failed, or with pip.
    """
    directory = options.prune.output_dir
    with storage_errors(directory):
        directory.mkdir(parents=True, exist_ok=True)
    with locked(directory):
        return _Run(options, say).whole()


def describe_request(options: PruneOptions) -> dict[str, Any]:
    """Return what a slimmed wheel depends on besides its source, as JSON values."""
    return {
        "targets": [target.name for target in options.request.targets],
        "ptx": options.request.ptx.value,
        "lto": options.request.lto.value,
        "exact": options.request.exact,
        "strip": options.library.strip.value,
        "embedded": options.library.embedded,
        "drop": sorted(options.drop.groups),
        "drop_named": sorted(options.drop.named),
        "drop_globs": sorted(options.drop.globs),
        "build_tag": options.build_tag,
    }


class _Run:
    """One run of ``build_wheelhouse``: what its steps share."""

    def __init__(self, options: WheelhouseOptions, say: Callable[[str], None]) -> None:
        self._options = options
        self._directory = options.prune.output_dir
        self._say = say
        self._request = describe_request(options.prune)
        self._anew = options.prune.force
        self._old = self._old_lock()
        self._done: dict[str, LockedWheel] = {}
        self._mutex = Mutex()
        self._reports: dict[str, PruneReport] = {}
        self._kept: list[str] = []
        self._reused: list[str] = []
        self._unsupported: list[TargetNeverSupportedError] = []

    def _old_lock(self) -> Lock:
        old = Lock.read(self._directory)
        if old is None:
            return Lock.of(self._request, ())
        self._anew = self._options.prune.force or dict(old.request) != self._request
        finished = (self._directory / REQUIREMENTS).exists()
        if dict(old.request) != self._request and finished and not self._options.prune.force:
            differ = [key for key in self._request if old.request.get(key) != self._request[key]]
            raise UsageError(
                "the wheelhouse is for other targets or options",
                place=Place(artifact=str(self._directory)),
                expected=_words(self._request, differ),
                found=_words(old.request, differ),
                hint="Choose another --output-dir, or --force to build it anew",
            )
        return old

    def whole(self) -> WheelhouseReport:
        """Do everything in order."""
        pip = Pip.find()
        for leftover in self._directory.glob(f"{PREFIX}*"):
            if leftover.is_dir():  # Of a run that was killed; no other runs, since the lock is held.
                shutil.rmtree(leftover, ignore_errors=True)
        self._say("resolving")
        resolved = pip.resolve(self._options.requirements)
        with TemporaryDirectory(prefix=PREFIX, dir=self._directory) as scratch:
            self._collect(pip, resolved, Path(scratch))
        if self._unsupported and not self._reports and not self._reused:
            self._take_back()
            raise self._unsupported[0]
        lock = Lock.of(self._request, self._done.values())
        write_index(self._directory, lock.wheels)
        write_text(self._directory / REQUIREMENTS, lock.requirements())
        lock.write(self._directory)
        return WheelhouseReport(
            directory=self._directory,
            wheels=lock.wheels,
            reports=self._reports,
            kept=tuple(sorted(self._kept)),
            reused=tuple(sorted(self._reused)),
            removed=self._remove_stale(lock),
            notices=tuple(str(error) for error in self._unsupported),
        )

    def _collect(self, pip: Pip, resolved: Iterable[Resolved], scratch: Path) -> None:
        """Bring every wheel into the wheelhouse; the first failure ends the run when the others are done."""
        workers = min(_AT_A_TIME, self._options.prune.jobs or available_cpus())
        futures: list[Future[None]] = []
        failed: WheelslimError | None = None
        with ThreadPoolExecutor(workers, "wheel") as pool:
            for number, wheel in enumerate(resolved):
                if self._reuse(wheel):
                    continue
                try:
                    source = self._fetch(pip, wheel, scratch / str(number))
                except WheelslimError as error:
                    failed = error
                    break
                futures.append(pool.submit(self._add, wheel, source, scratch))
        for future in futures:
            try:
                future.result()
            except WheelslimError as error:
                failed = failed or error
        if failed is not None:
            raise failed

    def _reuse(self, wheel: Resolved) -> bool:
        """Whether the result of the same source is there, whole."""
        known = None if wheel.sha256 is None else self._old.by_source.get(wheel.sha256)
        if known is None or self._anew:
            return False
        path = self._directory / known.file
        if not path.is_file() or path.stat().st_size != known.size or _sha256(path) != known.sha256:
            return False
        self._done[known.source_sha256] = known
        self._reused.append(known.file)
        self._say(f"{known.file} is there already")
        return True

    def _fetch(self, pip: Pip, wheel: Resolved, directory: Path) -> Path:
        if wheel.local_path is not None:
            return wheel.local_path
        self._say(f"downloading {wheel.name} {wheel.version}")
        with storage_errors(directory):
            directory.mkdir()
        return pip.download(wheel, self._options.requirements, directory)

    def _add(self, wheel: Resolved, source: Path, scratch: Path) -> None:
        """Slim one wheel into the wheelhouse, or take it as it is where there is nothing to slim."""
        sha256 = _sha256(source)
        if wheel.sha256 is not None and sha256 != wheel.sha256:
            raise ArtifactError(
                "the wheel is not the one that was resolved",
                place=Place(artifact=str(source)),
                expected=wheel.sha256,
                found=sha256,
            )
        result, report = self._slim(source, scratch / sha256)
        if source.is_relative_to(scratch):
            source.unlink(missing_ok=True)
        locked_wheel = LockedWheel(
            name=wheel.name,
            version=wheel.version,
            file=result.name,
            size=result.stat().st_size,
            sha256=_sha256(result),
            source_file=source.name,
            source_sha256=sha256,
        )
        with self._mutex:
            self._done[sha256] = locked_wheel
            if report is None:
                self._kept.append(result.name)
            else:
                self._reports[result.name] = report
            if not self._anew or not self._old.wheels:
                # What is done so far counts, should the run fail; what is for another request does not.
                Lock.of(self._request, {**self._old.by_source, **self._done}.values()).write(self._directory)
        self._say(f"{result.name} is done")

    def _slim(self, source: Path, scratch: Path) -> tuple[Path, PruneReport | None]:
        """Put the slimmed wheel under its name, or the original, and no report, where that is no larger."""
        report: PruneReport | None = None
        try:
            report = prune(source, replace(self._options.prune, output_dir=scratch, force=False))
        except TargetNeverSupportedError as error:
            with self._mutex:
                self._unsupported.append(error)
        if report is None or report.output is None or (report.size_after or 0) >= report.size_before:
            result = self._directory / source.name
            with atomic_output(result, force=True) as temporary, storage_errors(source):
                shutil.copyfile(source, temporary)
            return result, None
        slimmed = Path(report.output)
        result = self._directory / slimmed.name
        with storage_errors(result):
            slimmed.replace(result)
        return result, replace(report, output=str(result))

    def _take_back(self) -> None:
        """Leave the wheelhouse as it was: none of this run's wheels is of use."""
        new = {wheel.file for wheel in self._done.values()} - {wheel.file for wheel in self._old.wheels}
        with storage_errors(self._directory):
            for name in new:
                (self._directory / name).unlink(missing_ok=True)
            if self._old.wheels:
                self._old.write(self._directory)
            else:
                (self._directory / LOCK).unlink(missing_ok=True)

    def _remove_stale(self, lock: Lock) -> tuple[str, ...]:
        """Remove what an earlier run put here and this one does not need."""
        needed = {wheel.file for wheel in lock.wheels}
        stale = sorted({wheel.file for wheel in self._old.wheels} - needed)
        for name in stale:
            for path in (self._directory / name, self._directory / f"{name}{METADATA}"):
                with storage_errors(path):
                    path.unlink(missing_ok=True)
        return tuple(stale)


def _words(request: Mapping[str, Any], keys: Iterable[str]) -> str:
    """Write options for people: ``targets sm_80 sm_86, strip none``."""
    values = {key: request.get(key) for key in keys}
    return ", ".join(
        f"{key} {' '.join(value) or 'none' if isinstance(value, list) else value}"
        for key, value in values.items()
    )


def _sha256(path: Path) -> str:
    with opened(path) as original:
        return sha256_of(original.source)
