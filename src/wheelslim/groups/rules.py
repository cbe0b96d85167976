"""The groups as data: ``groups.toml``, and what a user asks of them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from wheelslim.errors import UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Group:
    """Files that go together; globs as in ``groups.toml``."""

    name: str
    what: str
    stops: str
    patterns: tuple[str, ...]
    needed: tuple[str, ...]


@dataclass(frozen=True)
class Profile:
    """Groups for one purpose, and whether symbols go too."""

    name: str
    what: str
    groups: tuple[str, ...]
    strip: bool


@dataclass(frozen=True)
class Rules:
    """Everything in ``groups.toml``."""

    groups: dict[str, Group]
    profiles: dict[str, Profile]
    protect_unused: tuple[str, ...]
    catalogues: tuple[str, ...]


@dataclass(frozen=True)
class DropRequest:
    """``named`` groups go whole; those of a profile without their needed files; ``globs`` go always."""

    named: frozenset[str] = frozenset()
    by_profile: frozenset[str] = frozenset()
    globs: tuple[str, ...] = ()

    @property
    def groups(self) -> frozenset[str]:
        """All groups that are asked for."""
        return self.named | self.by_profile

    @property
    def asks(self) -> bool:
        """Whether anything is asked for."""
        return bool(self.groups or self.globs)


@cache
def load_rules() -> Rules:
    """Read the rules that come with the package."""
    text = (Path(__file__).parent / "data" / "groups.toml").read_text(encoding="utf-8")
    data: dict[str, Any] = tomllib.loads(text)
    return Rules(
        groups={
            name: Group(name, one["what"], one["stops"], tuple(one["patterns"]), tuple(one["needed"]))
            for name, one in data["group"].items()
        },
        profiles={
            name: Profile(name, one["what"], tuple(one["groups"]), one["strip"])
            for name, one in data["profile"].items()
        },
        protect_unused=tuple(data["protect"]["unused"]),
        catalogues=tuple(data["protect"]["catalogues"]),
    )


def make_drop_request(names: str, globs: tuple[str, ...], profile: str | None) -> DropRequest:
    """Parse ``--drop``'s comma-separated names, ``--drop-glob`` and ``--profile``.

    Raises:
        UsageError: a group or a profile is unknown.
    """
    rules = load_rules()
    named = frozenset(word.strip() for word in names.split(",") if word.strip())
    if unknown := sorted(named - rules.groups.keys()):
        raise UsageError("unknown file group", expected=", ".join(rules.groups), found=", ".join(unknown))
    if profile is None:
        return DropRequest(named, frozenset(), globs)
    if profile not in rules.profiles:
        raise UsageError("unknown profile", expected=", ".join(rules.profiles), found=profile)
    return DropRequest(named, frozenset(rules.profiles[profile].groups), globs)
