"""Compute capabilities of devices, and the SM architectures that device code is built for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from wheelslim.errors import TargetError

_TEN = 10
_NAME = re.compile(r"(?:sm_?|compute_?)?([1-9][0-9]{1,2})([af]?)", re.ASCII | re.IGNORECASE)


class Suffix(str, Enum):
    """What ties device code to less than "this minor and later ones of the same major".

    The members order as none, ``a``, ``f``.
    """

    NONE = ""
    ARCH = "a"
    """Runs on exactly the device of that number (sm_90a)."""
    FAMILY = "f"
    """Runs on the devices of the same family, from that number on (sm_100f)."""


@dataclass(frozen=True, order=True, slots=True)
class ComputeCapability:
    """The compute capability of a device, such as 8.6 or 10.3."""

    major: int
    minor: int

    @classmethod
    def of_number(cls, number: int) -> ComputeCapability:
        """Split an SM number: 86 is 8.6, 103 is 10.3."""
        return cls(*divmod(number, _TEN))

    @property
    def number(self) -> int:
        """The SM number in decimal, as entry headers hold it: 86, 103."""
        return self.major * _TEN + self.minor

    def __str__(self) -> str:
        """Write it as NVIDIA does: ``8.6``."""
        return f"{self.major}.{self.minor}"


@dataclass(frozen=True, order=True, slots=True)
class Architecture:
    """An SM architecture, such as sm_86 or sm_90a: what a cubin or PTX was compiled for.

    ``number`` is the SM number in decimal (86, 90, 103). Architectures order by number, then suffix.
    """

    number: int
    suffix: Suffix = Suffix.NONE

    @classmethod
    def parse(cls, word: str) -> Architecture:
        """Read ``sm_90a``, ``compute_90a`` or ``90a``.

        The number is not checked against the known ones: a fatbin may hold a newer one.

        Raises:
            TargetError: the word has another form.
        """
        match = _NAME.fullmatch(word)
        if match is None:
            raise TargetError("no SM architecture", expected="a name such as sm_90a", found=repr(word))
        return cls(int(match[1]), Suffix(match[2].lower()))

    @property
    def capability(self) -> ComputeCapability:
        """The compute capability of the device that carries this number."""
        return ComputeCapability.of_number(self.number)

    @property
    def name(self) -> str:
        """The name of a cubin's architecture: ``sm_90a``."""
        return f"sm_{self.number}{self.suffix.value}"

    @property
    def ptx_name(self) -> str:
        """The name of a PTX's virtual architecture: ``compute_90a``."""
        return f"compute_{self.number}{self.suffix.value}"

    def __str__(self) -> str:
        """Return ``name``."""
        return self.name
