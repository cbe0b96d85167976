"""Globs over paths: ``*`` within a folder, ``**`` across folders."""

from __future__ import annotations

import re
from functools import lru_cache


@lru_cache(maxsize=1024)
def glob_regex(pattern: str) -> re.Pattern[str]:
    """Compile a glob; ``**/`` also matches no folder at all."""
    parts: list[str] = []
    position = 0
    while position < len(pattern):
        if pattern.startswith("**/", position):
            parts.append("(?:[^/]+/)*")
            position += 3
        elif pattern.startswith("**", position):
            parts.append(".*")
            position += 2
        elif pattern[position] == "*":
            parts.append("[^/]*")
            position += 1
        elif pattern[position] == "?":
            parts.append("[^/]")
            position += 1
        else:
            parts.append(re.escape(pattern[position]))
            position += 1
    return re.compile("".join(parts))


def matches(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether the whole path matches any of the patterns."""
    return any(glob_regex(pattern).fullmatch(path) for pattern in patterns)
