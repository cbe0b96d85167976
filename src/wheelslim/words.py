"""Words that callers of the library give for values of an enumeration."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from wheelslim.errors import UsageError

if TYPE_CHECKING:
    from enum import Enum

Chosen = TypeVar("Chosen", bound="Enum")


def value_of(kind: type[Chosen], word: str, option: str) -> Chosen:
    """Return the member of ``kind`` that ``word`` names, which was given for ``option``.

    Raises:
        UsageError: none is called so.
    """
    try:
        return kind(word)
    except ValueError:
        known = ", ".join(str(member.value) for member in kind)
        raise UsageError(f"unknown word for {option}", expected=known, found=repr(word)) from None
