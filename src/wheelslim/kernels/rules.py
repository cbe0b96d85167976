"""Which kernels nobody wants: by pattern, by a shipped list, or for not being in a profile."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wheelslim.errors import UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from wheelslim.kernels.used import UsedKernels

_INFERENCE = "--inference-only"
_USED = "--kernels-used"
_DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class KernelGroup:
    """Kernels that go together, and ``what`` stops working without them."""

    name: str
    what: str
    libraries: tuple[str, ...]
    drop: tuple[re.Pattern[str], ...]

    def applies(self, library: str) -> bool:
        """Whether the group speaks of the library with this path or file name."""
        file_name = library.rsplit("/", 1)[-1]
        return any(fnmatchcase(file_name, pattern) for pattern in self.libraries)


@dataclass(frozen=True)
class KernelRules:
    """What the user asked for; ``keep`` wins over everything else.

    With ``keep`` alone, everything that it does not match goes.
    """

    drop: tuple[re.Pattern[str], ...] = ()
    keep: tuple[re.Pattern[str], ...] = ()
    groups: tuple[KernelGroup, ...] = ()
    used: UsedKernels | None = None

    def __bool__(self) -> bool:
        """Whether anything was asked for."""
        return bool(self.drop or self.keep or self.groups or self.used)

    def unwanted(self, library: str, kernels: Mapping[str, str]) -> frozenset[str]:
        """Return the mangled names in ``kernels`` (mangled → demangled) that may go from ``library``."""
        patterns = [*self.drop, *(p for group in self.groups if group.applies(library) for p in group.drop)]
        unwanted = {mangled for mangled, name in kernels.items() if _matches(patterns, name)}
        if self.used is not None:
            used = self.used.among(kernels)
            allowed = always_kept()
            unwanted |= {m for m, name in kernels.items() if m not in used and not _matches(allowed, name)}
        if self.keep and not (self.drop or self.groups or self.used):
            unwanted = set(kernels)
        return frozenset(mangled for mangled in unwanted if not _matches(self.keep, kernels[mangled]))

    @property
    def idle_sentences(self) -> dict[str, str]:
        """For each thing that was asked for, as people wrote it, what to say if it is never in effect."""
        words = [
            *(f"--drop-kernels {pattern.pattern}" for pattern in self.drop),
            *(f"--keep-kernels {pattern.pattern}" for pattern in self.keep),
        ]
        sentences = {word: f"{word} matches no kernel that the targets load" for word in words}
        if self.groups:
            sentences[_INFERENCE] = f"{_INFERENCE} changes nothing: its list speaks of no kernel in here"
        if self.used:
            sentences[_USED] = f"{_USED}: no kernel that the profile lists is in here"
        return sentences

    def in_effect(self, library: str, kernels: Mapping[str, str]) -> frozenset[str]:
        """Return the keys of ``idle_sentences`` that find a kernel in ``library``."""
        names = kernels.values()
        words = {f"--drop-kernels {p.pattern}" for p in self.drop if any(map(p.search, names))}
        words |= {f"--keep-kernels {p.pattern}" for p in self.keep if any(map(p.search, names))}
        patterns = [pattern for group in self.groups if group.applies(library) for pattern in group.drop]
        if any(_matches(patterns, name) for name in names):
            words.add(_INFERENCE)
        if self.used is not None and self.used.among(kernels):
            words.add(_USED)
        return frozenset(words)


def compile_patterns(words: Iterable[str]) -> tuple[re.Pattern[str], ...]:
    """Compile regular expressions that a user wrote.

    Raises:
        UsageError: one does not compile.
    """
    patterns = []
    for word in words:
        try:
            patterns.append(re.compile(word))
        except re.error as error:
            raise UsageError(f"no regular expression: {error}", found=repr(word)) from error
    return tuple(patterns)


@lru_cache(maxsize=1)
def inference_groups() -> tuple[KernelGroup, ...]:
    """Return the shipped list of what an inference service does not run (``--inference-only``)."""
    return tuple(
        KernelGroup(
            name=group["name"],
            what=group["what"],
            libraries=tuple(group["libraries"]),
            drop=compile_patterns(group["drop"]),
        )
        for group in _load("inference.toml")["group"]
    )


@lru_cache(maxsize=1)
def always_kept() -> tuple[re.Pattern[str], ...]:
    """Return patterns of kernels that stay whether a profile lists them or not."""
    return compile_patterns(_load("used.toml")["keep"])


def _matches(patterns: Iterable[re.Pattern[str]], name: str) -> bool:
    return any(pattern.search(name) for pattern in patterns)


def _load(name: str) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((_DATA / name).read_text(encoding="utf-8"))
    return found
