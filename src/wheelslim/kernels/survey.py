"""Which kernels the containers of a library hold, in the code that the targets would load."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from wheelslim.errors import WheelslimError
from wheelslim.kernels.names import entry_kernels
from wheelslim.kernels.spelling import demangle
from wheelslim.library import read_library

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from wheelslim.fatbin.model import Container
    from wheelslim.plan import Planner
    from wheelslim.source import Source


@dataclass(frozen=True, slots=True)
class SurveyedContainer:
    """One container, as the targets see it.

    ``position`` is its offset in the file behind the source; ``size`` the bytes of the entries that
    would be kept. ``kernels`` are mangled names, or None where they cannot be listed; ``fault`` says
    why.
    """

    position: int
    size: int
    kernels: tuple[str, ...] | None
    fault: str = ""


@dataclass(frozen=True)
class KernelSurvey:
    """The containers of one library, which begins at ``base`` of the file behind its source."""

    containers: tuple[SurveyedContainer, ...]
    base: int = 0

    @cached_property
    def demangled(self) -> dict[str, str]:
        """Every kernel's mangled name, with the name that people read."""
        names = list(dict.fromkeys(name for one in self.containers for name in one.kernels or ()))
        return dict(zip(names, demangle(names), strict=True))


def survey_library(source: Source, planner: Planner) -> KernelSurvey:
    """List the kernels of the containers in a library's device sections.

    One payload is held at a time.

    Raises:
        ElfFormatError: the file is no well-formed ELF64 little-endian file.
    """
    found: list[SurveyedContainer] = []
    for part in read_library(source).device:
        section = source.part(part.section.sh_offset, part.section.sh_size)
        found.extend(survey_containers(section, part.tiling.containers, planner))
    return KernelSurvey(tuple(found), source.base)


def survey_containers(
    source: Source, containers: Iterable[Container], planner: Planner
) -> Iterator[SurveyedContainer]:
    """List the kernels of containers whose offsets count from the start of ``source``."""
    for container in containers:
        plan = planner.plan(container)
        position = source.base + container.offset
        size = sum(container.entries[index].size for index in plan.kept)
        chosen = {
            (index, choice.architecture.number)
            for choice in plan.before
            if choice.architecture is not None
            for index in choice.entries
        }
        kernels: dict[str, None] = {}
        try:
            for index, number in sorted(chosen):
                kernels.update(dict.fromkeys(entry_kernels(source, container.entries[index], number)))
        except WheelslimError as error:
            yield SurveyedContainer(position, size, None, str(error))
        else:
            yield SurveyedContainer(position, size, tuple(kernels))
