"""The devices that a caller of the library names, as words or as values."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from wheelslim.errors import UsageError
from wheelslim.targets import Target, parse_targets

if TYPE_CHECKING:
    from collections.abc import Iterable

TargetsGiven: TypeAlias = "str | Iterable[str | Target]"
"""Words such as ``"sm_80,sm_86"``, or Targets, or both mixed."""


def targets_of(given: TargetsGiven) -> tuple[Target, ...]:
    """Return the targets, each once; words are sorted by number, values keep their order.

    Raises:
        TargetError: a word is unknown, or there is none.
    """
    items = [given] if isinstance(given, str) else list(given)
    values = [item for item in items if isinstance(item, Target)]
    words = [item for item in items if isinstance(item, str)]
    if words or not values:
        values.extend(parse_targets(words))
    return tuple(dict.fromkeys(values))


def devices_of(given: TargetsGiven) -> tuple[Target, ...]:
    """Return the targets that are devices, leaving out what only asks for PTX.

    Raises:
        TargetError: a word is unknown, or there is none.
        UsageError: there is no device among them.
    """
    devices = tuple(target for target in targets_of(given) if target.is_device)
    if not devices:
        raise UsageError("no target is a device", expected="one such as sm_86")
    return devices
