"""The names of a package's members, checked as they come by: nothing may leave the package."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from wheelslim.archive.artifact import MemberType
from wheelslim.errors import ArchiveError, Place

if TYPE_CHECKING:
    from wheelslim.archive.allowance import Allowance
    from wheelslim.archive.tar_header import TarHeader

_DRIVE = re.compile(r"[A-Za-z]:")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_MAX_LINKS = 40
"""Symbolic links followed for one name, as Linux does (``MAXSYMLINKS``)."""

_DO_NOT_INSTALL = "Do not install this package"


class TarNames:
    """Every name seen so far, with its type and what it links to."""

    def __init__(self, allowance: Allowance | None = None) -> None:
        """Start without names; the sizes of the members are taken from ``allowance``."""
        self._allowance = allowance
        self._types: dict[str, MemberType] = {}
        self._symlinks: dict[str, str] = {}
        self._components: dict[str, str] = {}

    def add(self, header: TarHeader, component: str) -> None:
        """Take one member's name in; ``component`` names the tar that it lies in.

        Raises:
            ArchiveError: the name is absolute, has ``..`` or control characters, or was seen before; a
                hard link does not name an earlier file of the same tar; the members are too large.
        """
        name = header.name
        if self._allowance is not None:
            self._allowance.take(header.size)
        if name in (".", "") and header.type is MemberType.DIRECTORY:
            return
        if not name or is_unsafe(name):
            raise ArchiveError(
                "a member's name leads outside the package or is no plain path",
                place=Place(member=repr(name)),
                expected="a relative path without '..' and control characters",
                hint=_DO_NOT_INSTALL,
            )
        known = self._types.get(name)
        if known is not None and not (known is header.type is MemberType.DIRECTORY):
            raise ArchiveError("two members have the same name", place=Place(member=name))
        if header.type is MemberType.HARDLINK:
            target = header.link_target or ""
            if self._types.get(target) is not MemberType.FILE or self._components[target] != component:
                raise ArchiveError(
                    "a hard link does not name an earlier file of the package",
                    place=Place(member=name),
                    found=repr(target),
                    hint=_DO_NOT_INSTALL,
                )
        elif header.type is MemberType.SYMLINK:
            self._symlinks[name] = header.link_target or ""
        self._types[name] = header.type
        self._components[name] = component

    def finish(self) -> None:
        """Check what can only be told when all names are known.

        Raises:
            ArchiveError: a member lies behind a link or a file, or a symbolic link leads outside.
        """
        for name in self._types:
            parent = posixpath.dirname(name)
            while parent:
                if self._types.get(parent, MemberType.DIRECTORY) is not MemberType.DIRECTORY:
                    raise ArchiveError(
                        "a member lies behind another that is no directory",
                        place=Place(member=name),
                        found=f"{parent} is a {self._types[parent].value}",
                        hint=_DO_NOT_INSTALL,
                    )
                parent = posixpath.dirname(parent)
        for name, target in self._symlinks.items():
            if self._leads_outside(name):
                raise ArchiveError(
                    "a symbolic link leads outside the package",
                    place=Place(member=name),
                    found=repr(target),
                    hint=_DO_NOT_INSTALL,
                )

    def follow(self, name: str) -> str | None:
        """Return the name that ``name`` stands for once links are followed; no member need have it.

        None: it leads outside, or round in a ring.
        """
        return self._follow(name)[0]

    def _leads_outside(self, name: str) -> bool:
        return self._follow(name)[1]

    def _follow(self, name: str) -> tuple[str | None, bool]:
        """Return the name that links lead to, and whether they lead outside.

        A ring leads nowhere, so not outside: it is carried through like any dangling link.
        """
        todo = name.split("/")[::-1]
        done: list[str] = []
        links = 0
        while todo:
            part = todo.pop()
            if part in ("", "."):
                continue
            if part == "..":
                if not done:
                    return None, True
                done.pop()
                continue
            target = self._symlinks.get("/".join([*done, part]))
            if target is None:
                done.append(part)
                continue
            links += 1
            if is_absolute(target):
                return None, True
            if links > _MAX_LINKS:
                return None, False
            todo += target.split("/")[::-1]
        return "/".join(done), False


def is_unsafe(name: str) -> bool:
    """Whether a name has control characters, or leads outside the directory that it is unpacked into."""
    outside = is_absolute(name) or ".." in name.replace("\\", "/").split("/")
    return outside or _CONTROL.search(name) is not None


def is_absolute(path: str) -> bool:
    """Whether a path starts at a root or at a drive."""
    return path.startswith(("/", "\\")) or _DRIVE.match(path) is not None
