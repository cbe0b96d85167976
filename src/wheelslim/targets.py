"""Words that people write for GPUs, made into targets (docs/cli.md, "Targets")."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wheelslim import gpu_names
from wheelslim.architecture import Architecture, ComputeCapability, Suffix
from wheelslim.errors import TargetError
from wheelslim.native import native

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import TypeAlias

    Detect: TypeAlias = Callable[[], Iterable[ComputeCapability]]

# Every number that a CUDA toolkit since 9.0 lists under ``nvcc --list-gpu-code``; 101 became 110 in CUDA 13.
KNOWN_NUMBERS = (
    30, 32, 35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121,
)  # fmt: skip
"""SM numbers in decimal that a word may name."""

_FIRST_NUMBER = {Suffix.NONE: 0, Suffix.ARCH: 90, Suffix.FAMILY: 100}
"""The first SM number that has each suffix (nvcc 13.0 manual: sm_90a, sm_100f)."""

# The names that torch.utils.cpp_extension (PyTorch 2.9) takes in TORCH_CUDA_ARCH_LIST, and Kepler+Tegra
# of earlier ones.
_TORCH_NAMES = {
    "kepler": "3.5+PTX",
    "kepler+tesla": "3.7",
    "kepler+tegra": "3.2",
    "maxwell": "5.0 5.2+PTX",
    "maxwell+tegra": "5.3",
    "pascal": "6.0 6.1+PTX",
    "volta": "7.0+PTX",
    "volta+tegra": "7.2",
    "turing": "7.5+PTX",
    "ampere": "8.0 8.6+PTX",
    "ampere+tegra": "8.7",
    "ada": "8.9+PTX",
    "hopper": "9.0+PTX",
    "blackwell": "10.0 10.3 12.0 12.1+PTX",
    "blackwell+tegra": "11.0",
}

_SEPARATORS = re.compile(r"[,;]")
_NUMBER = re.compile(r"(?:sm[_-]?)?([1-9][0-9]{1,2})([af]?)", re.ASCII)
_DOTTED = re.compile(r"([1-9][0-9]?)\.([0-9])([af]?)", re.ASCII)
_COMPUTE = re.compile(r"compute[_-]?([1-9][0-9]{1,2})([af]?)", re.ASCII)
_PTX = "+ptx"
_LONGEST_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Target:
    """What must still run, or stay, after pruning.

    Either a device of ``capability``, or with ``only_ptx`` a PTX to keep. ``suffix`` is how the word
    was written: sm_90a is the same device as sm_90, and only a filter by name tells them apart.
    ``keep_ptx`` asks for the best PTX of that device too, for newer GPUs.
    """

    capability: ComputeCapability | None
    suffix: Suffix = Suffix.NONE
    keep_ptx: bool = False
    only_ptx: Architecture | None = None

    def __post_init__(self) -> None:
        """Raise ValueError unless the target is one of a device and a PTX."""
        if (self.capability is None) == (self.only_ptx is None):
            raise ValueError("a target is either a device or a PTX")

    @property
    def is_device(self) -> bool:
        """Whether this is a device, not just a PTX to keep."""
        return self.capability is not None

    @property
    def architecture(self) -> Architecture:
        """The architecture that the word names."""
        if self.only_ptx is not None:
            return self.only_ptx
        assert self.capability is not None  # noqa: S101 - __post_init__ has seen to it
        return Architecture(self.capability.number, self.suffix)

    @property
    def name(self) -> str:
        """One spelling: ``sm_86``, ``sm_90a``, ``sm_86+ptx``, ``compute_90``."""
        if self.only_ptx is not None:
            return self.only_ptx.ptx_name
        return self.architecture.name + (_PTX if self.keep_ptx else "")

    def __str__(self) -> str:
        """Return ``name``."""
        return self.name


def parse_targets(words: str | Iterable[str], detect: Detect = native) -> tuple[Target, ...]:
    """Read targets from one string or several; sorted by number, each once.

    ``detect`` answers the word ``native``.

    Raises:
        TargetError: a word is not known, or there is none.
    """
    ptx_of: dict[Target, bool] = {}
    for text in [words] if isinstance(words, str) else words:
        for chunk in _SEPARATORS.split(text):
            for target in _parse_chunk(chunk.strip(), detect):
                plain = replace(target, keep_ptx=False)
                ptx_of[plain] = ptx_of.get(plain, False) or target.keep_ptx
    if not ptx_of:
        raise TargetError("no target given", expected="one such as sm_86 or rtx-4090")
    targets = (replace(plain, keep_ptx=ptx) for plain, ptx in ptx_of.items())
    return tuple(sorted(targets, key=lambda target: (target.architecture, not target.is_device)))


def build_tag(targets: Iterable[Target]) -> str:
    """Name the targets in a wheel's build tag: ``0_sm80_sm86``.

    PEP 427 wants a digit first and no dash. ``+ptx`` becomes ``ptx``: ``0_sm86ptx_compute90``.
    """
    return "_".join(["0", *(re.sub("[_+]", "", target.name) for target in targets)])


def known_names() -> Mapping[str, ComputeCapability]:
    """Return the product names that a target may be written with, as keys without separators."""
    return gpu_names.NAMES


def _parse_chunk(chunk: str, detect: Detect) -> list[Target]:
    """Read words with spaces between, or one product name that has spaces (``RTX 4090``).

    Where both readings make sense (``b200 Blackwell``) the words win: they name no fewer devices.
    """
    words = chunk.split()
    targets: list[Target] = []
    for position, word in enumerate(words):
        try:
            targets.extend(_parse_word(word, detect))
        except TargetError:
            stem, keep_ptx = _without_ptx(chunk)
            if capability := gpu_names.lookup(stem):
                return [Target(capability, keep_ptx=keep_ptx)]
            if words[1:]:
                _refuse_name(" ".join(words[position:]))
            raise
    return targets


def _without_ptx(word: str) -> tuple[str, bool]:
    if word.lower().endswith(_PTX):
        return word[: -len(_PTX)], True
    return word, False


def _parse_word(word: str, detect: Detect) -> Iterator[Target]:
    stem, keep_ptx = _without_ptx(word)
    lowered = stem.lower()
    if lowered in _TORCH_NAMES:
        for part in _TORCH_NAMES[lowered].split():
            for target in _parse_word(part, detect):
                yield replace(target, keep_ptx=target.keep_ptx or keep_ptx)
    elif lowered == "native":
        # A GPU newer than this table is a fact, so its number is not checked.
        for capability in detect():
            yield Target(capability, keep_ptx=keep_ptx)
    elif match := _COMPUTE.fullmatch(lowered):
        if keep_ptx:
            raise TargetError(f"{_shown(word)} asks for PTX twice", expected=lowered)
        yield Target(None, only_ptx=_known(word, int(match[1]), Suffix(match[2])))
    elif match := _NUMBER.fullmatch(lowered):
        yield _device(_known(word, int(match[1]), Suffix(match[2])), keep_ptx)
    elif match := _DOTTED.fullmatch(lowered):
        number = ComputeCapability(int(match[1]), int(match[2])).number
        yield _device(_known(word, number, Suffix(match[3])), keep_ptx)
    elif product := gpu_names.lookup(stem):
        yield Target(product, keep_ptx=keep_ptx)
    else:
        _refuse_ambiguous(word, stem)
        raise _unknown(word, gpu_names.resembling(stem))


def _device(architecture: Architecture, keep_ptx: bool) -> Target:
    return Target(architecture.capability, architecture.suffix, keep_ptx)


def _known(word: str, number: int, suffix: Suffix) -> Architecture:
    if number not in KNOWN_NUMBERS:
        raise _unknown(word, _neighbours(number))
    if number < _FIRST_NUMBER[suffix]:
        first = Architecture(_FIRST_NUMBER[suffix], suffix)
        raise TargetError(
            f"unknown target {_shown(word)}",
            hint=f"The suffix {suffix.value} begins with {first}",
        )
    return Architecture(number, suffix)


def _neighbours(number: int) -> list[str]:
    """The known numbers on both sides, as people write them."""
    below = [f"sm_{known}" for known in KNOWN_NUMBERS if known < number][-1:]
    above = [f"sm_{known}" for known in KNOWN_NUMBERS if known > number][:1]
    return [*below, *above] if below and above else []


def _refuse_ambiguous(word: str, stem: str) -> None:
    """Raise TargetError if several chips have that name."""
    if meant := gpu_names.several(stem):
        raise TargetError(
            f"{_shown(word)} is the name of several GPUs", hint=f"Write {_alternatives(_with_numbers(meant))}"
        )


def _refuse_name(words: str) -> None:
    """Raise TargetError if ``words``, the rest of a list without commas, are much like one product's name."""
    stem, _ = _without_ptx(words)
    _refuse_ambiguous(words, stem)
    if gpu_names.lookup(stem):
        raise TargetError(
            f"{_shown(words)} is a name with spaces in a list", hint="Put a comma before and behind it"
        )
    if meant := gpu_names.resembling(stem):
        raise _unknown(words, meant)


def _unknown(word: str, meant: Iterable[str] = ()) -> TargetError:
    meant = _with_numbers(meant)
    lines = [f"Did you mean {_alternatives(meant)}?"] if meant else []
    lines.append(f"Known are sm_{', '.join(map(str, KNOWN_NUMBERS))}, written sm_86, 86 or 8.6")
    lines.append(
        "and sm_90a, sm_100f, 8.6+PTX, compute_86, native, products such as a100 or rtx-4090, "
        "and the names in TORCH_CUDA_ARCH_LIST"
    )
    return TargetError(f"unknown target {_shown(word)}", hint="\n".join(lines))


def _with_numbers(names: Iterable[str]) -> list[str]:
    """Say of each product which capability it has."""
    return [f"{name} ({gpu_names.NAMES[name]})" if name in gpu_names.NAMES else name for name in names]


def _alternatives(words: list[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words)


def _shown(word: str) -> str:
    short = word if len(word) <= _LONGEST_SHOWN else word[:_LONGEST_SHOWN] + "…"
    return repr(short)
