"""Which files of an artifact go, and which of those asked for stay because others refer to them."""

from __future__ import annotations

import configparser
import posixpath
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from wheelslim.archive.artifact import ArtifactKind, MemberType
from wheelslim.elf.layout import DynamicTag
from wheelslim.elf.reader import is_elf64, read_dynamic, read_elf
from wheelslim.elf.strings import dynamic_strings
from wheelslim.errors import ElfFormatError
from wheelslim.groups.globs import matches
from wheelslim.groups.mentions import Index, ending_in, file_names, imported_modules, included
from wheelslim.groups.rules import DropRequest, load_rules
from wheelslim.groups.unused import find_unused
from wheelslim.units import count_text

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

    from wheelslim.archive.artifact import Artifact, Member
    from wheelslim.source import Source

_SITE = "site-packages/"
_TEXT_LIMIT = 16 << 20
_HEADERS = (".h", ".hpp", ".cuh", ".inl", ".hh", ".inc", ".ipp", ".hxx", ".def", ".td")
_PYTHON = ".py"
_GLOB = "--drop-glob"


@dataclass(frozen=True)
class DropPlan:
    """``dropped`` maps a member to the group that it goes with; ``kept`` to why it stays all the same."""

    dropped: dict[str, str] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """The dropped members, by the name in the artifact and by the path below site-packages."""
        return frozenset(self.dropped) | {site_path(name) for name in self.dropped}

    @property
    def notices(self) -> tuple[str, ...]:
        """Sentences for people: what goes with which group, and what stays."""
        lines = [
            f"dropped with {group}: {count_text(count, 'file')}"
            for group, count in sorted(self.count().items())
        ]
        lines.extend(self.remarks)
        if self.kept:
            example, why = next(iter(self.kept.items()))
            files = count_text(len(self.kept), "file")
            lines.append(f"kept of the groups: {files}, such as {example}: {why}")
        return tuple(lines)

    def count(self) -> dict[str, int]:
        """Number of dropped members by group."""
        return dict(Counter(self.dropped.values()))


@dataclass
class _Words:
    """What one file refers to."""

    modules: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    headers: set[str] = field(default_factory=set)
    needed: set[str] = field(default_factory=set)


def plan_drops(artifact: Artifact, request: DropRequest) -> DropPlan:
    """Decide; reads the text of Python files and headers, and the dynamic tables of libraries.

    The group ``unused`` is judged in trees only: a wheel does not know what else is installed.

    Raises:
        ArchiveError: the artifact does not read.
    """
    if not request.asks:
        return DropPlan()
    asked: dict[str, str] = {}
    idle = dict.fromkeys(request.globs)
    for member, _ in artifact.walk(lambda *_: False):
        group = _group_of(member, request)
        if group is not None:
            asked[member.name] = group
        for glob in [one for one in idle if _matches(member, (one,))]:
            del idle[glob]
    plan = _settle(asked, *_read(artifact, asked), request) if asked else DropPlan()
    remarks = [f"{_GLOB} {glob} matches nothing (** spans folders)" for glob in idle]
    if "unused" in request.groups and artifact.kind is ArtifactKind.TREE:
        plan.dropped.update(dict.fromkeys(find_unused(artifact), "unused"))
    elif "unused" in request.named:
        remarks.append("the group unused is judged in environments only: nothing was dropped for it")
    return replace(plan, remarks=tuple(remarks))


def site_path(name: str) -> str:
    """Return the path as Python sees it: below site-packages, where there is one."""
    return name.rpartition(_SITE)[2]


def _group_of(member: Member, request: DropRequest) -> str | None:
    if member.type not in (MemberType.FILE, MemberType.HARDLINK) or ".dist-info/" in member.name:
        return None
    path = site_path(member.name)
    if _matches(member, request.globs):
        return _GLOB
    groups = load_rules().groups
    for name in sorted(request.groups):
        if matches(path, groups[name].patterns):
            return name
    return None


def _matches(member: Member, globs: tuple[str, ...]) -> bool:
    return matches(site_path(member.name), globs) or matches(member.name, globs)


def _read(artifact: Artifact, asked: dict[str, str]) -> tuple[dict[str, _Words], set[str]]:
    """Return what each file refers to, and the modules that entry points name."""
    with_libraries = any(".so" in posixpath.basename(name) for name in asked)
    ends = ending_in({posixpath.splitext(name)[1] for name in asked} - {"", _PYTHON, ".pyc", ".pyi"} or {"."})
    words: dict[str, _Words] = {}
    roots: set[str] = set()

    def wants(member: Member, head: bytes) -> bool:
        if member.type is not MemberType.FILE:
            return False
        if is_elf64(head):
            return with_libraries and member.name not in asked
        return member.size <= _TEXT_LIMIT and (
            member.name.endswith((_PYTHON, *_HEADERS, ".dist-info/entry_points.txt"))
        )

    for member, source in artifact.walk(wants):
        if source is None:
            continue
        if member.name.endswith("/entry_points.txt"):
            roots |= set(_entry_points(source.read(0, source.size)))
        else:
            words[member.name] = _words(member.name, source, ends)
    return words, roots


def _words(name: str, source: Source, ends: re.Pattern[bytes]) -> _Words:
    if name.endswith(_PYTHON):
        text = source.read(0, source.size)
        return _Words(modules=set(imported_modules(site_path(name), text)), names=file_names(text, ends))
    if name.endswith(_HEADERS):
        return _Words(headers=included(source.read(0, source.size)))
    try:
        elf = read_elf(source)
        needed = dynamic_strings(source, elf, read_dynamic(source, elf), DynamicTag.NEEDED)
    except ElfFormatError:
        return _Words()
    return _Words(needed=set(needed))


def _entry_points(text: bytes) -> Iterator[str]:
    parser = configparser.ConfigParser(delimiters=("=",), strict=False, interpolation=None)
    try:
        parser.read_string(text.decode("utf-8", "replace"))
    except configparser.Error:
        return
    for section in parser.sections():
        for _, value in parser.items(section):
            yield value.partition(":")[0].strip()


def _settle(
    asked: dict[str, str], words: dict[str, _Words], roots: set[str], request: DropRequest
) -> DropPlan:
    """Keep what files that stay refer to, and what those refer to in turn."""
    groups = load_rules().groups
    index = Index()
    original = {site_path(name): name for name in asked}
    for path in original:
        index.add(path)
    kept: dict[str, str] = {}
    pending: list[tuple[str, _Words]] = [(name, one) for name, one in words.items() if name not in asked]
    pending.append(("an entry point", _Words(modules=roots)))

    def keep(path: str, why: str) -> None:
        name = original[path]
        group = asked[name]
        if name in kept or group == _GLOB:
            return
        if group in request.named and matches(path, groups[group].needed):
            return  # Asked for by name: these go although torch.compile or Triton would read them.
        kept[name] = why
        if name in words:
            pending.append((name, words[name]))

    for path, name in original.items():
        group = asked[name]
        if group != _GLOB and group not in request.named and matches(path, groups[group].needed):
            keep(path, f"{group} that a profile keeps")
    while pending:
        origin, one = pending.pop()
        for path in index.modules(one.modules):
            keep(path, f"imported by {origin}")
        for path in index.files(one.names):
            if not path.endswith((".pyc", ".pyi", _PYTHON)):
                keep(path, f"named in {origin}")
        for path in index.headers(one.headers):
            keep(path, f"included by {origin}")
        for path in index.files(one.needed):
            keep(path, f"needed by {origin}")
    dropped = {name: group for name, group in asked.items() if name not in kept}
    return DropPlan(dropped, kept)
