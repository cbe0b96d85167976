"""The promises, proved on two artifacts member by member."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING

from wheelslim.archive.artifact import ArtifactKind, MemberType
from wheelslim.archive.paths_json import PATHS_JSON, Content
from wheelslim.contents import ContentKind, content_kind
from wheelslim.elf.strip import StripMode
from wheelslim.errors import ElfFormatError, FatbinFormatError, Place, VerifyError, WheelslimError
from wheelslim.proof import books
from wheelslim.proof.conda_record import is_conda_record, prove_conda_record
from wheelslim.proof.declared import Declared
from wheelslim.proof.device import prove_device
from wheelslim.proof.dropped import dropped_device_code
from wheelslim.proof.fatbin import verify_fatbin
from wheelslim.proof.host import prove_host
from wheelslim.proof.library import check_related
from wheelslim.proof.listing import Listing
from wheelslim.proof.pairs import paired_sources
from wheelslim.proof.promise import Finding, Promise
from wheelslim.proof.side import Side
from wheelslim.rewriter import HEAD_SIZE
from wheelslim.units import count_text, size_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wheelslim.architecture import ComputeCapability
    from wheelslim.archive.opener import AnyArtifact
    from wheelslim.source import Source
    from wheelslim.stamp import Stamp


class ArtifactProof:
    """Proves promise after promise and keeps the first failure of each.

    ``notices`` are sentences for people, filled by ``run``.
    """

    def __init__(
        self,
        before: AnyArtifact,
        after: AnyArtifact,
        devices: Sequence[ComputeCapability],
        stamps: Sequence[Stamp],
    ) -> None:
        """Take what is compared; ``run`` compares it."""
        self._before = before
        self._after = after
        self._devices = devices
        self._told = tuple(stamps)
        self._stamps = {stamp.member for stamp in stamps}
        self._dropped = {name for stamp in stamps for name in stamp.dropped_members}
        self._failures: dict[Promise, VerifyError] = {}
        self._counts: Counter[str] = Counter()
        self._digests: dict[str, books.Digest] = {}
        self.notices: tuple[str, ...] = ()

    def run(self) -> tuple[Finding, ...]:
        """Compare everything.

        Raises:
            VerifyError: the two artifacts are unrelated.
            WheelslimError: the original cannot be read.
        """
        listing = Listing.of(self._before, self._after)
        listing.check_related()
        for promise, problems in (
            (Promise.MEMBERS, listing.strays(self._dropped, self._stamps)),
            (Promise.ORDER, listing.misplaced()),
            (Promise.ATTRIBUTES, listing.other_attributes(self._stamps)),
        ):
            for error in problems:
                self._fail(promise, error)
        self._counts["attributes"] = len(listing.common)
        self._contents(listing)
        self._books(listing)
        self.notices = tuple(dropped_device_code(self._before, listing, self._devices))
        return tuple(
            Finding(promise, text, self._failures.get(promise)) for promise, text in self._texts().items()
        )

    def _fail(self, promise: Promise, error: VerifyError) -> None:
        error.at(artifact=str(self._after.path))
        self._failures.setdefault(promise, error)

    def _contents(self, listing: Listing) -> None:
        hashes_all = self._after.kind in (ArtifactKind.CONDA, ArtifactKind.TAR_BZ2)
        names = frozenset(
            name
            for name in listing.common
            if listing.before[name].type is MemberType.FILE
            and listing.after[name].type is MemberType.FILE
            and not books.is_book(name)
            and name not in self._stamps
        )
        try:
            for name, pair in paired_sources(self._before, self._after, names, listing):
                if pair is None:
                    self._counts["identical"] += 1
                    continue
                old, new = pair
                if old.size == new.size and _difference(old, new) is None:
                    self._counts["identical"] += 1
                    if hashes_all:
                        self._digests[name] = _digest(new)
                    continue
                self._digests[name] = _digest(new)
                self._changed(name, old, new)
        except VerifyError as error:
            self._fail(Promise.MEMBERS, error)

    def _changed(self, name: str, old: Source, new: Source) -> None:
        kinds = {content_kind(name, side.read(0, min(HEAD_SIZE, side.size))) for side in (old, new)}
        if kinds == {ContentKind.FATBIN}:
            self._changed_fatbin(name, old, new)
            return
        if kinds != {ContentKind.LIBRARY}:
            self._fail(Promise.MEMBERS, _content_differs(name, old, new))
            return
        try:
            declared = self._declared(name)
            before, after = Side.of(old, embedded=declared.embedded), Side.of(new)
            check_related(before.elf, after.elf)
        except (VerifyError, ElfFormatError) as error:
            self._fail(Promise.HOST_CODE, _as_failure(error, name))
            return
        self._counts["libraries"] += 1
        try:
            device = prove_device(before, after, self._devices, declared)
            self._counts["containers"] += device.containers
            self._counts["entries"] += device.entries
        except VerifyError as error:
            self._fail(Promise.DEVICE_CODE, _as_failure(error, name))
        try:
            self._counts["host bytes"] += prove_host(before, after, declared)
        except VerifyError as error:
            self._fail(Promise.HOST_CODE, _as_failure(error, name))

    def _changed_fatbin(self, name: str, old: Source, new: Source) -> None:
        self._counts["libraries"] += 1
        try:
            self._counts["entries"] += verify_fatbin(old, new, self._devices)
        except (VerifyError, FatbinFormatError) as error:
            self._fail(Promise.DEVICE_CODE, _as_failure(error, name))

    def _declared(self, name: str) -> Declared:
        """Join what the stamps say was asked for."""
        modes = {stamp.strip for stamp in self._told}
        told = (mode for mode in (StripMode.ALL, StripMode.DEBUG) if mode.value in modes)
        return Declared(
            stored_anew=any(stamp.stored_anew for stamp in self._told),
            emptied=frozenset().union(*(stamp.emptied_containers(name) for stamp in self._told)),
            strip=next(told, StripMode.NONE),
            embedded=any(stamp.embedded for stamp in self._told),
        )

    def _books(self, listing: Listing) -> None:
        for name in (name for name in listing.after if name in self._stamps or name.endswith("/WHEEL")):
            self._digests[name] = _digest_of(self._after.read(name))
        # Records of conda packages list RECORDs, so they come last.
        for name in sorted(listing.common, key=is_conda_record):
            if not books.is_book(name) or listing.after[name].type is not MemberType.FILE:
                continue
            try:
                self._book(name)
            except VerifyError as error:
                self._fail(Promise.BOOKS, _as_failure(error, name))
        if PATHS_JSON in listing.common:
            try:
                self._counts["paths"] += books.prove_paths(self._after.read(PATHS_JSON), self._held(listing))
            except VerifyError as error:
                self._fail(Promise.BOOKS, error)

    def _book(self, name: str) -> None:
        before, after = self._before.read(name), self._after.read(name)
        if books.is_record(name):
            self._counts["rows"] += books.prove_record(name, before, after, self._digests, self._dropped)
            self._digests[name] = _digest_of(after)
        elif name == books.INDEX_JSON:
            books.prove_index(before, after)
        elif name.endswith("/WHEEL"):
            books.prove_wheel_file(name, before, after)
        elif is_conda_record(name):
            self._counts["paths"] += prove_conda_record(
                name, before, after, changed=self._digests, dropped=self._dropped, added=self._stamps
            )
        elif name == books.FILES:
            books.prove_files(before, after, self._dropped)

    def _held(self, listing: Listing) -> dict[str, Content]:
        held = {}
        for name, member in listing.after.items():
            target = name if member.type is MemberType.FILE else member.link_target or ""
            if member.type in (MemberType.FILE, MemberType.HARDLINK):
                if target in self._digests:
                    held[name] = books.content_of(self._digests[target])
            else:
                held[name] = Content(member.type)
        return held

    def _texts(self) -> dict[Promise, str]:
        count = self._counts
        targets = count_text(len(self._devices), "target")
        libraries = f"in {count_text(count['libraries'], 'changed library', 'changed libraries')}"
        entries = count_text(count["entries"], "entry", "entries")
        attributes = f"{count_text(count['attributes'], 'member')}: the same"
        texts = {
            Promise.DEVICE_CODE: (
                f"{count_text(count['containers'], 'container')} × {targets}: "  # noqa: RUF001
                f"identical; {entries} kept, byte for byte; {libraries}"
            ),
            Promise.HOST_CODE: f"{size_text(count['host bytes'])} at the same addresses; {libraries}",
            Promise.MEMBERS: f"{count_text(count['identical'], 'member')}: identical",
            Promise.ATTRIBUTES: attributes,
            Promise.ORDER: attributes,
        }
        if count["rows"] or count["paths"] or Promise.BOOKS in self._failures:
            rows = f"{count_text(count['rows'], 'row')} of RECORD"
            paths = f", {count_text(count['paths'], 'path')} of conda" if count["paths"] else ""
            texts[Promise.BOOKS] = f"{rows}{paths}: true"
        if self._after.kind is ArtifactKind.FILE:
            for promise in (Promise.MEMBERS, Promise.ORDER):
                if promise not in self._failures:
                    del texts[promise]
        return texts


def _difference(old: Source, new: Source) -> int | None:
    """Return the first offset at which two sources differ, if any."""
    position = 0
    for one, other in zip(old.blocks(), new.blocks(), strict=False):
        if one != other:
            short = zip(one, other, strict=False)
            return position + next((i for i, (a, b) in enumerate(short) if a != b), min(len(one), len(other)))
        position += len(one)
    return None if old.size == new.size else position


def _content_differs(name: str, old: Source, new: Source) -> VerifyError:
    return VerifyError(
        "the content differs",
        place=Place(member=name, offset=_difference(old, new)),
        expected=f"the original's {old.size} bytes",
        found=f"{new.size} bytes",
    )


def _as_failure(error: WheelslimError, member: str) -> VerifyError:
    if isinstance(error, VerifyError):
        error.at(member=member)
        return error
    failure = VerifyError(error.what, place=error.place, expected=error.expected, found=error.found)
    failure.at(member=member)
    return failure


def _digest(source: Source) -> books.Digest:
    digest = hashlib.sha256()
    for block in source.blocks():
        digest.update(block)
    return books.Digest(digest.hexdigest(), source.size)


def _digest_of(data: bytes) -> books.Digest:
    return books.Digest(hashlib.sha256(data).hexdigest(), len(data))
