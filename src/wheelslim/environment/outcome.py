"""What a run over a tree has to tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from wheelslim.errors import WheelslimError
    from wheelslim.report.model import PruneReport


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A file or directory that was left as it is although it should not have been, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class EnvironmentReport:
    """What became of a tree.

    ``prune`` tells of the libraries; ``changed`` names those that were replaced, ``packages`` the
    distributions and conda packages whose books changed (``torch-2.14.1``), ``finished`` the libraries
    whose books an earlier run, which was killed, had left open.
    """

    prune: PruneReport
    changed: tuple[str, ...]
    packages: tuple[str, ...]
    finished: tuple[str, ...]
    passed_over: tuple[PassedOver, ...]
    exit_code: ExitCode

    @classmethod
    def of(
        cls,
        prune: PruneReport,
        changed: Iterable[str],
        packages: Iterable[str],
        finished: Iterable[str],
        failed: Mapping[str, WheelslimError],
    ) -> EnvironmentReport:
        """Put the parts in order; ``failed`` says by name what was passed over."""
        return cls(
            prune=prune,
            changed=tuple(sorted(changed)),
            packages=tuple(sorted(packages)),
            finished=tuple(sorted(finished)),
            passed_over=tuple(PassedOver(name, str(error)) for name, error in sorted(failed.items())),
            exit_code=max((error.exit_code for error in failed.values()), default=ExitCode.DONE),
        )
