"""What a tree holds that matters here: libraries, books, notes, and what is left alone and why."""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from wheelslim.archive.artifact import MemberType
from wheelslim.archive.scratch import PREFIX, remove_leftovers
from wheelslim.archive.tree import TreeArtifact
from wheelslim.environment.note import is_note

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from wheelslim.archive.artifact import Member

_SMALLEST = 1 << 10
"""Bytes below which no file can hold device code: an ELF header, sections and one container."""

_CACHE_TAG = "CACHEDIR.TAG"
"""Marks caches (bford.info/cachedir); uv puts it into virtual environments too."""

_VENV = "pyvenv.cfg"
_CONDA_CACHE = "urls.txt"
"""What conda and mamba keep in every directory of unpacked packages."""

_OF_LIBRARIES = frozenset({"lib", "lib64", "site-packages", "dist-packages"})
"""Directories of libraries by their names: links in them, or of these names, are named."""

_SYSTEM = ("/proc", "/sys", "/dev")


@dataclass(frozen=True)
class Candidate:
    """A file that may hold device code, and the further names (hard links) that it has in the tree.

    ``size`` is in bytes. Names are POSIX paths inside the tree.
    """

    name: str
    links: tuple[str, ...]
    size: int


@dataclass(frozen=True)
class Listing:
    """A tree as listed. ``files``, ``directories`` and ``notes`` are names, ``size`` the bytes of all files.

    ``outward`` names symbolic links to libraries outside, ``caches`` directories that were left out,
    ``unreadable`` what the operating system refused, by name.
    """

    tree: TreeArtifact
    files: tuple[str, ...]
    directories: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    notes: tuple[str, ...]
    size: int
    outward: tuple[str, ...] = ()
    caches: tuple[str, ...] = ()
    unreadable: dict[str, str] = field(default_factory=dict)


def list_tree(root: Path, wants: Callable[[str, int, bytes], bool], *, clean: bool) -> Listing:
    """List ``root``, a path without symbolic links; ``clean`` removes the leftovers of killed runs.

    ``wants`` sees the name, size and first bytes of each file, as ``Rewriter.wants`` does.

    Raises:
        StorageError: the directory cannot be listed.
    """
    caches: dict[str, None] = {}

    def passes_over(name: str, names: Collection[str]) -> bool:
        if str(root / name) in _SYSTEM:
            return True
        is_cache = (_CACHE_TAG in names and _VENV not in names) or (
            _CONDA_CACHE in names and PurePosixPath(name).name == "pkgs"
        )
        if is_cache:
            caches[name] = None
        return is_cache

    tree = TreeArtifact(root, passes_over)
    temporary = _temporary(tree)
    if clean and temporary:
        for directory in {(root / name).parent for name in temporary}:
            remove_leftovers(directory)
        tree = TreeArtifact(root, passes_over)
        temporary = _temporary(tree)
    links: dict[str, list[str]] = {}
    for member in tree.members:
        if member.type is MemberType.HARDLINK and member.name not in temporary:
            links.setdefault(member.link_target or "", []).append(member.name)

    def candidate(member: Member, head: bytes) -> bool:
        ours = member.name in temporary or is_note(member.name)
        if not ours and member.size >= _SMALLEST and wants(member.name, member.size, head):
            found.append(Candidate(member.name, tuple(links.get(member.name, ())), member.size))
        return False

    found: list[Candidate] = []
    for _ in tree.walk(candidate):
        pass
    files = [
        member
        for member in tree.members
        if member.type in (MemberType.FILE, MemberType.HARDLINK) and member.name not in temporary
    ]
    return Listing(
        tree=tree,
        files=tuple(member.name for member in files if not is_note(member.name)),
        directories=tuple(
            member.name.rstrip("/")
            for member in tree.members
            if member.type in (MemberType.DIRECTORY, MemberType.SYMLINK)
        ),
        candidates=tuple(found),
        notes=tuple(member.name for member in files if is_note(member.name)),
        size=sum(member.size for member in files),
        outward=tuple(
            member.name
            for member in tree.members
            if member.type is MemberType.SYMLINK and _leads_out(root, member.name)
        ),
        caches=tuple(caches),
        unreadable={name: what for name, what in tree.unreadable.items() if name not in temporary},
    )


def _temporary(tree: TreeArtifact) -> set[str]:
    return {
        member.name
        for member in tree.members
        if PurePosixPath(member.name).name.startswith(PREFIX) and not is_note(member.name)
    }


def _leads_out(root: Path, name: str) -> bool:
    """Whether a symbolic link leads to a library, or a directory of them, outside; nothing is opened."""
    path = PurePosixPath(name)
    is_kind = stat.S_ISREG if ".so" in path.name else stat.S_ISDIR
    if is_kind is stat.S_ISDIR and not _OF_LIBRARIES & set(path.parts):
        return False
    try:
        target = (root / name).resolve(strict=True)
        return not target.is_relative_to(root) and is_kind(target.stat().st_mode)
    except (OSError, RuntimeError):
        return False
