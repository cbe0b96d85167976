"""What becomes of each member of an artifact: libraries are slimmed, the rest is carried through."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from wheelslim.account import account_of_nothing, label_order
from wheelslim.elf.glance import naming_part, section_names
from wheelslim.elf.layout import EHDR
from wheelslim.elf.reader import is_elf64
from wheelslim.elf.strip import StripMode
from wheelslim.errors import ElfFormatError, TargetNeverSupportedError
from wheelslim.fatbin.layout import DEVICE_SECTIONS
from wheelslim.kernels.filter import KernelVerdict, judge_library
from wheelslim.kernels.rules import KernelRules
from wheelslim.loose.fatbin import slim_fatbin
from wheelslim.loose.image import is_cubin
from wheelslim.loose.plan import LoosePlan
from wheelslim.plan import Planner, Request
from wheelslim.proof.declared import Declared
from wheelslim.proof.fatbin import verify_fatbin
from wheelslim.proof.library import LibraryProof, verify_library
from wheelslim.report.model import LibraryReport
from wheelslim.request_notices import missing_ptx, request_notices
from wheelslim.selection import Coverage
from wheelslim.slim import LibraryOptions, slim_library
from wheelslim.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from wheelslim.container_rewrite import ContainerRewriter
    from wheelslim.pieces import Piece
    from wheelslim.rewriter import RewriteResult
    from wheelslim.source import Source

_DEVICE_NAMES = frozenset(name.encode() for name in DEVICE_SECTIONS)

STAMP_SCHEMA = "wheelslim/stamp/1"


@dataclass
class SlimRewriter:
    """The ``Rewriter`` for one artifact; collects an account of every library that it sees.

    ``dropped`` are members that are left out, ``loose`` is what was decided on device code in files
    of its own, ``kernels`` which kernels nobody wants, ``storage`` stores entries anew. ``alone``: the
    artifact is one file, so that one which does not parse is refused.
    Different members may be planned in different threads; each call touches only its own keys.
    """

    request: Request
    options: LibraryOptions = field(default_factory=LibraryOptions)
    verify: bool = True
    source_sha256: Callable[[], str] | None = None
    dropped: Collection[str] = ()
    loose: LoosePlan = field(default_factory=LoosePlan)
    kernels: KernelRules = field(default_factory=KernelRules)
    storage: ContainerRewriter | None = None
    alone: bool = False
    reports: dict[str, LibraryReport] = field(default_factory=dict)
    proofs: dict[str, LibraryProof] = field(default_factory=dict)
    verdicts: dict[str, KernelVerdict] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make the planner that all libraries share."""
        self._planner = Planner(self.request)

    def drops(self, name: str) -> bool:
        """Leave out what the file groups named (``groups.plan``)."""
        return name in self.dropped

    def wants(self, name: str, size: int, head: bytes) -> bool:
        """Look into 64-bit ELF files of hosts, and into fatbins that keep less than they hold."""
        return (is_elf64(head) and not is_cubin(head)) or name in self.loose.fatbins

    def telling_part(self, name: str, size: int, head: bytes) -> tuple[int, int] | None:
        """Return where the section headers are, if they alone decide."""
        if name in self.loose.fatbins or self.options.strip is not StripMode.NONE or self.options.embedded:
            return None
        return naming_part(head, size) if len(head) == EHDR.size else None

    def stays(self, name: str, size: int, head: bytes, part: bytes) -> bool:
        """Carry a library without device sections through; it is in the reports nevertheless."""
        place = naming_part(head, size)
        names = section_names(head, place[0], part) if place is not None else None
        if names is None or not names.isdisjoint(_DEVICE_NAMES):
            return False
        self.reports[name] = LibraryReport(name, account_of_nothing(size, self.request.devices))
        return True

    def plan(self, name: str, source: Source) -> Sequence[Piece] | None:
        """Plan the slimmed library; a file that does not parse is carried through, with a notice.

        Raises:
            ElfFormatError: it does not parse, and there is nothing to carry it through with.
        """
        if name in self.loose.fatbins:
            return slim_fatbin(source, self._planner, self.storage.rewrite if self.storage else None)
        try:
            slimmed = slim_library(source, self._planner, self._options(name, source))
        except ElfFormatError as error:
            if self.alone:
                raise
            self.notices.append(f"{name} is carried through as it is: {error}")
            return None
        verdict = self.verdicts.get(name)
        self.reports[name] = LibraryReport(name, slimmed.account, verdict.account if verdict else None)
        return slimmed.pieces

    def _options(self, name: str, source: Source) -> LibraryOptions:
        options = self.options
        if self.storage is not None:
            options = replace(options, rewrite=self.storage.rewrite)
        if self.kernels:
            verdict = judge_library(source, name, self._planner, self.kernels)
            if verdict.account.containers:
                self.verdicts[name] = verdict
            options = replace(options, veto=verdict.veto)
        return options

    def confirm(self, name: str, original: Source, written: Source) -> None:
        """Prove the promises on what was written, unless the user has switched that off.

        Raises:
            VerifyError: a promise does not hold.
        """
        if not self.verify:
            return
        # A filter by name may lose a device on purpose: the report counts those, the others are proved.
        lost = (
            {item.target for item in self.reports[name].account.coverage if item.lost}
            if (self.request.exact and name in self.reports)
            else set()
        )
        devices = [d.capability for d in self.request.devices if d.capability and d.name not in lost]
        if name in self.loose.fatbins:
            verify_fatbin(original, written, devices)
            return
        verdict = self.verdicts.get(name)
        declared = Declared(
            stored_anew=self.storage is not None,
            emptied=verdict.offsets if verdict else frozenset(),
            strip=self.options.strip,
            embedded=self.options.embedded,
        )
        self.proofs[name] = verify_library(original, written, devices, declared)

    def stamp(self, result: RewriteResult) -> bytes:
        """Return ``wheelslim.json``: version, targets, source hash, and what each library lost."""
        libraries: dict[str, dict[str, object]] = {}
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
            if (verdict := self.verdicts.get(change.name)) is not None and verdict.offsets:
                libraries[change.name]["emptied_containers"] = sorted(verdict.offsets)
        stamp = {
            "schema": STAMP_SCHEMA,
            "wheelslim": VERSION,
            "targets": [target.name for target in self.request.targets],
            "ptx": self.request.ptx.value,
            "exact": self.request.exact,
            "lto": self.request.lto.value,
            "stored_anew": self.storage is not None,
            "strip": self.options.strip.value,
            "embedded": self.options.embedded,
            "source_sha256": self.source_sha256() if self.source_sha256 else None,
            "libraries": libraries,
            "dropped_members": list(result.dropped),
        }
        return (json.dumps(stamp, indent=2) + "\n").encode()

    @property
    def kernel_notices(self) -> tuple[str, ...]:
        """What the rules about kernels did to each library, and which did nothing, for people."""
        did = (
            f"{name}: {verdict.account.text}"
            for name, verdict in sorted(self.verdicts.items())
            if verdict.account.emptied or verdict.account.mixed
        )
        in_effect = {word for verdict in self.verdicts.values() for word in verdict.in_effect}
        idle = (said for word, said in self.kernels.idle_sentences.items() if word not in in_effect)
        return (*did, *idle)

    @property
    def outcome_notices(self) -> tuple[str, ...]:
        """What came of the request besides the counts, for people."""
        return (*request_notices(self.request, self.reports), *self.kernel_notices)

    @property
    def has_device_code(self) -> bool:
        """Whether any library held a container."""
        return any(report.account.containers for report in self.reports.values())

    def check_supported(self) -> None:
        """Check that every requested device could run something of the artifact.

        Raises:
            TargetNeverSupportedError: no container of any library served one of them.
        """
        if not self.has_device_code and not self.loose:
            return
        served = {target.name: target.name in self.loose.served for target in self.request.devices}
        labels = dict.fromkeys(self.loose.labels)
        for report in self.reports.values():
            labels.update(dict.fromkeys(report.account.before))
            served.update(dict.fromkeys(report.account.served_elsewhere, True))
            for item in report.account.coverage:
                covered = any(n for coverage, n in item.before.items() if coverage is not Coverage.NONE)
                served[item.target] = served.get(item.target, False) or covered
        missing = [target for target, covered in served.items() if not covered]
        missing.extend(missing_ptx(self.request, self.reports) if self.has_device_code else ())
        if missing and not self.loose.unknown:
            raise TargetNeverSupportedError(
                f"no device code in it runs on {', '.join(missing)}",
                found=f"code for {', '.join(sorted(labels, key=label_order))}",
                hint="Choose a target that it supports, or another build of the package",
            )
