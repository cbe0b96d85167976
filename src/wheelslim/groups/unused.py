"""Libraries that nothing in an environment refers to: not by DT_NEEDED, not by name in any text."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wheelslim.archive.artifact import MemberType
from wheelslim.elf.layout import DynamicTag, ObjectType, SectionFlag, SectionType, SegmentType
from wheelslim.elf.reader import is_elf64, read_dynamic, read_elf
from wheelslim.elf.strings import dynamic_strings
from wheelslim.errors import ArtifactError
from wheelslim.groups.globs import matches
from wheelslim.groups.rules import load_rules
from wheelslim.source import BLOCK
from wheelslim.units import count_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelslim.archive.artifact import Artifact, Member
    from wheelslim.elf.model import ElfFile
    from wheelslim.source import Source

_LIBRARY = re.compile(r"(lib.+?)\.so(?:\.[0-9][^/]*)?")
_MENTION = re.compile(rb"lib[A-Za-z0-9_+.-]{1,120}")
_LONGEST = 128
_TEXT = (
    ".py",
    ".pth",
    ".sh",
    ".json",
    ".toml",
    ".cfg",
    ".ini",
    ".txt",
    ".yaml",
    ".yml",
    ".cmake",
    ".pc",
    ".la",
)
_TEXT_LIMIT = 16 << 20
_IMMEDIATE = 8
_NEAR = 256
_DEVICE = (".nv_fatbin", "__nv_relfatbin", ".cask_resource")


@dataclass
class _Node:
    """A file: the stems that it mentions, and its own where it is a library that could go."""

    stem: str | None = None
    mentions: set[str] = field(default_factory=set)


def find_unused(artifact: Artifact) -> dict[str, str]:
    """Return the libraries of an environment that nothing refers to, each with its evidence.

    A library counts as referred to when its name up to ``.so`` stands in DT_NEEDED or in the data of
    any other library that is used, or in any Python or configuration file. Extension modules and
    executables are never candidates, and names that programs put together at run time are protected
    by the rules.

    Raises:
        ArchiveError: the artifact does not read.
    """
    nodes: dict[str, _Node] = {}
    for member, source in artifact.walk(_wants):
        if source is not None:
            nodes[member.name] = _node(member, source)
    suspects = {node.stem for node in nodes.values() if node.stem} - _reached(nodes)
    if suspects:
        _add_names_in_code(artifact, nodes, {stem for stem in suspects if stem is not None})
    reached = _reached(nodes)
    return {
        name: f"no DT_NEEDED, data or code of {count_text(len(nodes), 'file')} names {node.stem}"
        for name, node in sorted(nodes.items())
        if node.stem is not None and node.stem not in reached
    }


def _add_names_in_code(artifact: Artifact, nodes: dict[str, _Node], stems: set[str]) -> None:
    """Look for names that the compiler has cut into immediates: ``libnvrtc`` is one 8-byte constant."""
    fragments = {
        stem: [part for i in range(0, len(stem), _IMMEDIATE) if len(part := stem[i : i + _IMMEDIATE]) >= 4]
        for stem in stems
    }
    starts = re.compile(b"|".join({re.escape(parts[0].encode()) for parts in fragments.values()}))
    for member, source in artifact.walk(lambda member, head: member.name in nodes and is_elf64(head)):
        if source is None:
            continue
        node = nodes[member.name]
        try:
            elf = read_elf(source)
        except ArtifactError:
            continue
        for section in elf.sections:
            if section.sh_flags & SectionFlag.EXECINSTR and section.file_size:
                code = source.part(section.sh_offset, section.file_size)
                node.mentions |= {
                    stem for stem in _fragments_in(code, starts, fragments) if stem != node.stem
                }


def _fragments_in(code: Source, starts: re.Pattern[bytes], fragments: dict[str, list[str]]) -> Iterator[str]:
    tail = b""
    for block in code.blocks(0, code.size, BLOCK):
        text = tail + block
        for match in starts.finditer(text):
            near = text[max(0, match.start() - _NEAR) : match.end() + _NEAR]
            for stem, parts in fragments.items():
                if all(part.encode() in near for part in parts):
                    yield stem
        tail = block[-2 * _NEAR :]


def _node(member: Member, source: Source) -> _Node:
    rules = load_rules()
    if matches(member.name, rules.catalogues):
        return _Node()
    if member.name.endswith(_TEXT):
        return _Node(mentions=set(_stems(source.read(0, source.size))))
    try:
        elf = read_elf(source)
        node = _Node(mentions=set(_library_mentions(source, elf)))
    except ArtifactError:
        return _Node()  # It is no library that could be judged, nor one that could be loaded.
    if _could_go(member, elf) and not matches(member.name, rules.protect_unused):
        node.stem = _stem(member.name)
    return node


def _wants(member: Member, head: bytes) -> bool:
    if member.type is not MemberType.FILE or ".dist-info/" in member.name:
        return False
    return is_elf64(head) or (member.name.endswith(_TEXT) and member.size <= _TEXT_LIMIT)


def _stem(name: str) -> str | None:
    match = _LIBRARY.fullmatch(posixpath.basename(name))
    return None if match is None else match[1]


def _could_go(member: Member, elf: ElfFile) -> bool:
    is_program = any(segment.p_type == SegmentType.INTERP for segment in elf.segments)
    return elf.header.e_type == ObjectType.DYN and not is_program and _stem(member.name) is not None


def _reached(nodes: dict[str, _Node]) -> set[str]:
    """Follow mentions from everything that stays: all files but the candidates."""
    by_stem: dict[str, list[_Node]] = {}
    for node in nodes.values():
        if node.stem is not None:
            by_stem.setdefault(node.stem, []).append(node)
    reached: set[str] = set()
    pending = [node for node in nodes.values() if node.stem is None]
    while pending:
        for stem in pending.pop().mentions & by_stem.keys():
            if stem not in reached:
                reached.add(stem)
                pending.extend(by_stem[stem])
    return reached


def _library_mentions(source: Source, elf: ElfFile) -> Iterator[str]:
    dynamic = read_dynamic(source, elf)
    for name in dynamic_strings(source, elf, dynamic, DynamicTag.NEEDED):
        yield from _stems(name.encode())
    soname = {_stem(name) for name in dynamic_strings(source, elf, dynamic, DynamicTag.SONAME)}
    for section in elf.sections:
        if (
            section.sh_type == SectionType.PROGBITS
            and section.is_alloc
            and not section.sh_flags & SectionFlag.EXECINSTR
            and section.name not in _DEVICE
        ):
            data = source.part(section.sh_offset, section.file_size)
            yield from (stem for stem in _section_mentions(data) if stem not in soname)


def _section_mentions(data: Source) -> Iterator[str]:
    tail = b""
    for block in data.blocks(0, data.size, BLOCK):
        yield from _stems(tail + block)
        tail = block[-_LONGEST:]


def _stems(text: bytes) -> Iterator[str]:
    """Yield what the words that begin with ``lib`` could be the names of: cut at ``.so``, or whole."""
    for word in _MENTION.findall(text):
        name = word.decode("ascii")
        yield name.partition(".so")[0]
        yield name.rstrip(".+-")
