"""Architectures in file names."""

from __future__ import annotations

import re

from wheelslim.architecture import Architecture, Suffix

_WORD = re.compile(r"(?:(?<![A-Za-z0-9])(?:sm|compute)_?|S[mM]_?)(\d{2,3})([af]?)(?![0-9a-z])", re.ASCII)
"""``sm_90a``, ``sm86``, ``compute_75`` on their own, ``Sm100f`` and ``SM90`` inside a longer word."""

_SMALLEST, _LARGEST = 30, 199
_PLACE = "\0"


def named_architecture(path: str, number: int | None = None) -> Architecture | None:
    """Return the architecture that ``path`` names, None where it names none or several.

    The file name counts before the directories. With ``number``, only names of that SM number
    count, so that the suffix of a known architecture can be learnt.
    """
    directory, _, file_name = path.rpartition("/")
    for text in (file_name, directory):
        found = {
            Architecture(int(digits), Suffix(suffix))
            for digits, suffix in _WORD.findall(text)
            if _SMALLEST <= int(digits) <= _LARGEST and number in (None, int(digits))
        }
        if found:
            return found.pop() if len(found) == 1 else None
    return None


def names_other_than(path: str, number: int) -> bool:
    """Whether the file name names architectures, and none of them has this SM number."""
    found = {int(digits) for digits, _ in _WORD.findall(path.rpartition("/")[2])}
    return bool(found) and number not in found


def stem(path: str, number: int) -> str:
    """Return ``path`` with every name of that SM number taken out: what variants have in common."""
    return _WORD.sub(lambda word: _PLACE if int(word[1]) == number else word[0], path)
