"""Containers that go because nobody wants a kernel in them, and the account of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelslim.kernels.operators import operator_name, source_name
from wheelslim.kernels.survey import survey_library
from wheelslim.units import count_text, size_text

if TYPE_CHECKING:
    from wheelslim.fatbin.model import Container
    from wheelslim.kernels.rules import KernelRules
    from wheelslim.kernels.survey import KernelSurvey
    from wheelslim.plan import Planner
    from wheelslim.source import Source


_SHOWN = 8
"""How many operators are named to people."""


@dataclass(frozen=True)
class KernelAccount:
    """What the rules did to one library. Sizes in bytes of entries that the targets would keep.

    ``mixed`` containers hold unwanted kernels beside wanted ones and stay whole; ``unlisted`` ones
    cannot be read and stay. ``operators`` are no longer there for any target, ``sources`` are the
    CUDA sources of emptied containers, where names tell.
    """

    containers: int
    size: int
    emptied: int
    emptied_size: int
    mixed: int
    mixed_size: int
    unlisted: int
    kernels: int
    kernels_gone: int
    operators: tuple[str, ...]
    sources: tuple[str, ...]

    @property
    def text(self) -> str:
        """For people, one sentence."""
        text = (
            f"emptied {self.emptied:,} of {count_text(self.containers, 'container')}: only unwanted kernels "
            f"({size_text(self.emptied_size)} of {size_text(self.size)})"
        )
        if self.mixed:
            text += f"; kept {self.mixed:,} whole: some unwanted kernels ({size_text(self.mixed_size)})"
        if self.unlisted:
            text += f"; kept {self.unlisted:,} whose kernels cannot be read"
        if self.operators:
            rest = len(self.operators) - _SHOWN
            text += f"; gone: {', '.join(self.operators[:_SHOWN])}"
            text += f" and {rest:,} more (--json names them)" if rest > 0 else ""
        return text


@dataclass(frozen=True)
class KernelVerdict:
    """Which containers of one library go.

    ``positions`` are offsets in the file behind the source that was surveyed, so ``veto`` has to
    get sources of that very file; ``offsets`` are the same in the library. ``in_effect`` says which
    rules found a kernel (``KernelRules.idle_sentences``).
    """

    positions: frozenset[int]
    account: KernelAccount
    base: int = 0
    in_effect: frozenset[str] = frozenset()

    @property
    def offsets(self) -> frozenset[int]:
        """Offsets of the emptied containers in the library's own file."""
        return frozenset(position - self.base for position in self.positions)

    def veto(self, source: Source, container: Container) -> bool:
        """Whether ``container``, whose offset counts from the start of ``source``, is emptied."""
        return source.base + container.offset in self.positions


def judge_library(source: Source, library: str, planner: Planner, rules: KernelRules) -> KernelVerdict:
    """Read the kernels of the library at ``source`` and apply ``rules``; ``library`` is its path or name.

    Raises:
        ElfFormatError: the file is no well-formed ELF64 little-endian file.
    """
    return judge(survey_library(source, planner), library, rules)


def judge(survey: KernelSurvey, library: str, rules: KernelRules) -> KernelVerdict:
    """Apply ``rules``: a container goes when it has kernels and all of them are unwanted.

    One without kernels (constants, device functions) stays, and so does one whose kernels cannot be
    listed.
    """
    unwanted = rules.unwanted(library, survey.demangled)
    emptied = [
        one for one in survey.containers if one.kernels and all(name in unwanted for name in one.kernels)
    ]
    positions = frozenset(one.position for one in emptied)
    staying = [one for one in survey.containers if one.position not in positions]
    mixed = [one for one in staying if any(name in unwanted for name in one.kernels or ())]
    kept = {name for one in staying for name in one.kernels or ()}
    gone = {name for one in emptied for name in one.kernels or ()} - kept
    account = KernelAccount(
        containers=len(survey.containers),
        size=sum(one.size for one in survey.containers),
        emptied=len(emptied),
        emptied_size=sum(one.size for one in emptied),
        mixed=len(mixed),
        mixed_size=sum(one.size for one in mixed),
        unlisted=sum(one.kernels is None for one in survey.containers),
        kernels=len(survey.demangled),
        kernels_gone=len(gone),
        operators=_operators_gone(survey, gone, kept),
        sources=tuple(sorted({source for name in gone if (source := source_name(name)) is not None})),
    )
    in_effect = rules.in_effect(library, survey.demangled)
    return KernelVerdict(positions, account, survey.base, in_effect)


def _operators_gone(survey: KernelSurvey, gone: set[str], kept: set[str]) -> tuple[str, ...]:
    """Name what the ``gone`` kernels compute, leaving out what a kept kernel still names."""
    operators = {operator_name(survey.demangled[name]) for name in gone}
    left = "\n".join(survey.demangled[name] for name in kept)
    return tuple(sorted(name for name in operators if name.rsplit("::", 1)[-1] not in left))
