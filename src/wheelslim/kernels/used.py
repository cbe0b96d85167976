"""Kernels that a profile lists, found again among a library's kernels."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from wheelslim.kernels.spelling import base_name, leaf, signature

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class UsedKernels:
    """Names of kernels that ran, as the profiler spelt them."""

    names: frozenset[str]

    @cached_property
    def _by_leaf(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for name in self.names:
            found[leaf(name)].append(name)
        return found

    def among(self, kernels: Mapping[str, str]) -> frozenset[str]:
        """Return the mangled names in ``kernels`` (mangled → demangled) that are, or may be, among those.

        A name is looked for as it stands, then by its signature. If none has that, every kernel with
        the same name before its template arguments counts: rather too many than one too few.
        """
        found: set[str] = set()
        seen: set[str] = set()
        candidates: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for mangled, demangled in kernels.items():
            same = self.names & {mangled, demangled}
            if same:
                found.add(mangled)
                seen |= same
            key = leaf(demangled)
            if key in self._by_leaf:
                candidates[key].append((mangled, demangled))
        for key, pairs in candidates.items():
            found |= _alike([name for name in self._by_leaf[key] if name not in seen], pairs)
        return frozenset(found)


def _alike(names: list[str], pairs: list[tuple[str, str]]) -> set[str]:
    """Match names by signature, and those without a match by base name."""
    if not names:
        return set()
    signatures = {signature(name) for name in names}
    found: dict[str, str] = {}
    for mangled, demangled in pairs:
        if (written := signature(demangled)) in signatures:
            found[mangled] = written
    matched = set(found.values())
    bases = {base_name(name) for name in names if signature(name) not in matched}
    return set(found) | {mangled for mangled, demangled in pairs if bases and base_name(demangled) in bases}
