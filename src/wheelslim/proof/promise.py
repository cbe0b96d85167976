"""The promises that are proved, and what was found of each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wheelslim.errors import VerifyError


class Promise(Enum):
    """What is proved (docs/cli.md, "verify")."""

    DEVICE_CODE = "device code"
    HOST_CODE = "host code"
    MEMBERS = "other members"
    ATTRIBUTES = "modes and dates"
    ORDER = "order"
    BOOKS = "books"
    """RECORD and WHEEL of wheels, paths.json and index.json of conda packages."""


@dataclass(frozen=True)
class Finding:
    """One promise: ``what`` was compared, with counts, and the first ``failure``, if any."""

    promise: Promise
    what: str
    failure: VerifyError | None = None
