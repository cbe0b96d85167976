"""What a run of ``prune`` has to tell: plain values, filled by the pipeline, shown by text, JSON and HTML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.account import Share, label_order
from wheelslim.selection import Coverage

if TYPE_CHECKING:
    from wheelslim.account import LibraryAccount
    from wheelslim.kernels.filter import KernelAccount
    from wheelslim.proof.library import LibraryProof

_PTX_PREFIX = "compute_"


@dataclass(frozen=True)
class LibraryReport:
    """One library of an artifact; ``path`` is its POSIX path inside the artifact.

    ``kernels`` is what rules about kernels did to it, None without rules.
    """

    path: str
    account: LibraryAccount
    kernels: KernelAccount | None = None

    @property
    def before(self) -> dict[str, Share]:
        """Device code by label as it was, that outside the usual sections with it if it was pruned."""
        embedded = self.account.embedded
        return self.account.before if embedded is None else _joined(self.account.before, embedded.before)

    @property
    def after(self) -> dict[str, Share]:
        """The same as it is now."""
        embedded = self.account.embedded
        return self.account.after if embedded is None else _joined(self.account.after, embedded.after)

    @property
    def has_device_code(self) -> bool:
        """Whether it held device code, as far as that was looked at."""
        return bool(self.account.containers or self.before)

    @property
    def lost_ptx(self) -> bool:
        """Whether it held PTX and holds none any more."""
        had = any(label.startswith(_PTX_PREFIX) for label in self.before)
        return had and not any(label.startswith(_PTX_PREFIX) for label in self.after)


@dataclass(frozen=True)
class TargetSummary:
    """How all containers of an artifact serve one target, before and after; counts of containers."""

    target: str
    before: dict[Coverage, int]
    after: dict[Coverage, int]
    lost: int


@dataclass(frozen=True)
class PruneReport:
    """What became of one artifact.

    Sizes are bytes: ``size_*`` those of the artifact's own file (of all files for a tree),
    ``installed_*`` those of its members unpacked. ``output`` is None, and ``size_after`` may be None,
    where nothing was written (``--dry-run``). ``targets``, ``ptx`` and ``exact`` repeat the request.
    ``dropped`` names members that were left out, ``notices`` are sentences for people. ``proof`` sums
    up what was compared in the changed libraries, None where nothing was.
    """

    artifact: str
    output: str | None
    targets: tuple[str, ...]
    size_before: int
    size_after: int | None
    installed_before: int
    installed_after: int
    libraries: tuple[LibraryReport, ...] = ()
    dropped: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    ptx: str = "auto"
    exact: bool = False
    proof: LibraryProof | None = None

    @property
    def dry_run(self) -> bool:
        """Whether nothing was written."""
        return self.output is None

    @property
    def changed(self) -> bool:
        """Whether anything was dropped or is of another size than before."""
        return (
            bool(self.dropped)
            or self.installed_after != self.installed_before
            or self.size_after not in (None, self.size_before)
        )

    @property
    def with_device_code(self) -> tuple[LibraryReport, ...]:
        """The libraries that hold device code, the largest first."""
        found = [library for library in self.libraries if library.has_device_code]
        return tuple(sorted(found, key=lambda library: (-library.account.size_before, library.path)))

    @property
    def coverage(self) -> tuple[TargetSummary, ...]:
        """The coverage of each target, summed over all libraries."""
        totals: dict[str, TargetSummary] = {}
        for library in self.libraries:
            for item in library.account.coverage:
                old = totals.get(item.target)
                if old is None:
                    totals[item.target] = TargetSummary(
                        item.target, dict(item.before), dict(item.after), item.lost
                    )
                else:
                    totals[item.target] = TargetSummary(
                        item.target,
                        _added(old.before, item.before),
                        _added(old.after, item.after),
                        old.lost + item.lost,
                    )
        return tuple(totals.values())

    @property
    def stripped(self) -> int:
        """Bytes of symbols and debug information that went."""
        return sum(library.account.stripped for library in self.libraries)

    @property
    def lost_ptx(self) -> tuple[str, ...]:
        """Paths of the libraries whose last PTX went, so that GPUs of a later generation cannot run them."""
        return tuple(library.path for library in self.libraries if library.lost_ptx)


def _joined(one: dict[str, Share], other: dict[str, Share]) -> dict[str, Share]:
    labels = sorted({*one, *other}, key=label_order)
    nothing = Share(0, 0)
    return {
        label: Share(
            one.get(label, nothing).entries + other.get(label, nothing).entries,
            one.get(label, nothing).size + other.get(label, nothing).size,
        )
        for label in labels
    }


def _added(one: dict[Coverage, int], other: dict[Coverage, int]) -> dict[Coverage, int]:
    return {
        coverage: one.get(coverage, 0) + other.get(coverage, 0)
        for coverage in Coverage
        if coverage in one or coverage in other
    }
