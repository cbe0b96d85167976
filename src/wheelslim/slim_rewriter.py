"""What becomes of each member of an artifact: libraries are slimmed, the rest is carried through."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wheelslim.elf.reader import is_elf64
from wheelslim.errors import ElfFormatError, TargetNeverSupportedError
from wheelslim.plan import Planner, Request
from wheelslim.proof.library import LibraryProof, verify_library
from wheelslim.report.model import LibraryReport
from wheelslim.selection import Coverage
from wheelslim.slim import LibraryOptions, slim_library
from wheelslim.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from wheelslim.pieces import Piece
    from wheelslim.rewriter import RewriteResult
    from wheelslim.source import Source

STAMP_SCHEMA = "wheelslim/stamp/1"


@dataclass
class SlimRewriter:
    """The ``Rewriter`` for one artifact; collects an account of every library that it sees.

    Different members may be planned in different threads; each call touches only its own keys.
    """

    request: Request
    options: LibraryOptions = field(default_factory=LibraryOptions)
    verify: bool = True
    source_sha256: Callable[[], str] | None = None
    dropped: Collection[str] = ()
    reports: dict[str, LibraryReport] = field(default_factory=dict)
    proofs: dict[str, LibraryProof] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make the planner that all libraries share."""
        self._planner = Planner(self.request)

    def drops(self, name: str) -> bool:
        """Leave out what the file groups named (``groups.plan``)."""
        return name in self.dropped

    def wants(self, name: str, size: int, head: bytes) -> bool:
        """Look into 64-bit ELF files."""
        return is_elf64(head)

    def plan(self, name: str, source: Source) -> Sequence[Piece] | None:
        """Plan the slimmed library; a file that does not parse is carried through, with a notice."""
        try:
            slimmed = slim_library(source, self._planner, self.options)
        except ElfFormatError as error:
            self.notices.append(f"{name} is carried through as it is: {error}")
            return None
        self.reports[name] = LibraryReport(name, slimmed.account)
        return slimmed.pieces

    def confirm(self, name: str, original: Source, written: Source) -> None:
        """Prove the promises on what was written, unless the user has switched that off.

        Raises:
            VerifyError: a promise does not hold.
        """
        if not self.verify:
            return
        devices = [device.capability for device in self.request.devices if device.capability]
        if self.request.exact:
            devices = []  # A filter by name may lose a device on purpose; the report counts them.
        self.proofs[name] = verify_library(original, written, devices)

    def stamp(self, result: RewriteResult) -> bytes:
        """Return ``wheelslim.json``: version, targets, source hash, and what each library lost."""
        libraries = {}
        for change in result.changed:
            report = self.reports.get(change.name)
            if report is None:
                continue
            before, after = report.account.before, report.account.after
            lost = {
                label: share.entries - (after[label].entries if label in after else 0)
                for label, share in before.items()
            }
            libraries[change.name] = {
                "size_before": change.size_before,
                "size_after": change.size_after,
                "sha256_before": change.sha256_before,
                "sha256_after": change.sha256_after,
                "method": report.account.method.value,
                "dropped_entries": {label: count for label, count in lost.items() if count},
            }
        stamp = {
            "schema": STAMP_SCHEMA,
            "wheelslim": VERSION,
            "targets": [target.name for target in self.request.targets],
            "ptx": self.request.ptx.value,
            "exact": self.request.exact,
            "source_sha256": self.source_sha256() if self.source_sha256 else None,
            "libraries": libraries,
            "dropped_members": list(result.dropped),
        }
        return (json.dumps(stamp, indent=2) + "\n").encode()

    @property
    def has_device_code(self) -> bool:
        """Whether any library held a container."""
        return any(report.account.containers for report in self.reports.values())

    def check_supported(self) -> None:
        """Check that every requested device could run something of the artifact.

        Raises:
            TargetNeverSupportedError: no container of any library served one of them.
        """
        if not self.has_device_code:
            return
        served: dict[str, bool] = {}
        labels: dict[str, None] = {}
        for report in self.reports.values():
            labels.update(dict.fromkeys(report.account.before))
            for item in report.account.coverage:
                covered = any(n for coverage, n in item.before.items() if coverage is not Coverage.NONE)
                served[item.target] = served.get(item.target, False) or covered
        missing = [target for target, covered in served.items() if not covered]
        if missing:
            raise TargetNeverSupportedError(
                f"no device code in it runs on {', '.join(missing)}",
                found=f"code for {', '.join(labels)}",
                hint="Choose a target that it supports, or another build of the package",
            )
