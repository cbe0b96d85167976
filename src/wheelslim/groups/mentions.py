"""What the files that stay refer to: imports, file names in text, ``#include`` lines, DT_NEEDED."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_IMPORT = re.compile(
    rb"^[ \t]*(?:import[ \t]+([\w.]+(?:[ \t]*,[ \t]*[\w.]+)*)"
    rb"|from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]+\(?([^#\n;]*))",
    re.MULTILINE,
)
_STEM = re.compile(rb"[\w+.-]+\Z")
_LONGEST_STEM = 128
_INCLUDE = re.compile(rb"^[ \t]*#[ \t]*include(?:_next)?[ \t]*[<\"]([^>\"\n]+)[>\"]", re.MULTILINE)


def imported_modules(path: str, text: bytes) -> Iterator[str]:
    """Yield dotted names that a Python file at ``path`` may import, absolute; over-approximated.

    ``from a import b`` gives both ``a`` and ``a.b``, since b may be a module.
    """
    package = path.removesuffix(".py").replace("/", ".").split(".")[:-1]
    for plain, source, names in _IMPORT.findall(text):
        if plain:
            yield from (word.strip().decode() for word in plain.split(b","))
            continue
        word = source.decode()
        dots = len(word) - len(word.lstrip("."))
        base = package[: len(package) - dots + 1] if dots else []
        module = ".".join([*base, *([word.lstrip(".")] if word.lstrip(".") else [])])
        yield module
        for name in names.replace(b")", b"").split(b","):
            first = name.split()
            if first:
                yield f"{module}.{first[0].decode('utf-8', 'replace')}"


def ending_in(suffixes: Iterable[str]) -> re.Pattern[bytes]:
    """Compile the search for names that end in one of ``suffixes`` (with their dots)."""
    words = b"|".join(sorted(re.escape(suffix[1:].encode()) for suffix in suffixes))
    return re.compile(rb"\.(?:" + words + rb")(?![A-Za-z0-9_])")


def file_names(text: bytes, ends: re.Pattern[bytes]) -> set[str]:
    """Return the words of ``text`` that look like file names with one of the endings.

    The endings are searched first, since a search that starts with a dot is quick.
    """
    found = set()
    for match in ends.finditer(text):
        stem = _STEM.search(text, max(0, match.start() - _LONGEST_STEM), match.start())
        if stem is not None:
            found.add((stem[0] + match[0]).decode("ascii", "replace"))
    return found


def included(text: bytes) -> set[str]:
    """Return the paths that ``#include`` lines name."""
    return {word.decode("utf-8", "replace") for word in _INCLUDE.findall(text)}


@dataclass
class Index:
    """Candidates for dropping, by the names under which others may refer to them."""

    by_base: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    by_module: dict[str, str] = field(default_factory=dict)

    def add(self, path: str) -> None:
        """Register a candidate."""
        self.by_base[posixpath.basename(path)].append(path)
        if path.endswith(".py"):
            module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            self.by_module[module] = path

    def modules(self, names: Iterable[str]) -> Iterator[str]:
        """Yield candidates that are one of the modules, or a package on the way to one."""
        for name in names:
            parts = name.split(".")
            for length in range(1, len(parts) + 1):
                found = self.by_module.get(".".join(parts[:length]))
                if found is not None:
                    yield found

    def files(self, names: Iterable[str]) -> Iterator[str]:
        """Yield candidates whose base name is one of the names."""
        for name in names:
            yield from self.by_base.get(name, ())

    def headers(self, names: Iterable[str]) -> Iterator[str]:
        """Yield candidates whose path ends in one of the included paths."""
        for name in names:
            for path in self.by_base.get(posixpath.basename(name), ()):
                if path == name or path.endswith(f"/{name.lstrip('./')}"):
                    yield path
