"""Sentences for people about a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelslim.selection import Coverage
from wheelslim.units import count_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wheelslim.environment.listing import Listing
    from wheelslim.plan import Request
    from wheelslim.report.model import LibraryReport

_SHOWN = 3


def support_notices(libraries: Iterable[LibraryReport], request: Request) -> list[str]:
    """Name, for each device, the libraries that never had code for it: normal in an environment."""
    with_code = sorted((library for library in libraries if library.account.before), key=lambda one: one.path)
    notices = []
    for device in request.devices:
        without = [
            library.path
            for library in with_code
            for item in library.account.coverage
            if item.target == device.name
            and set(item.before) <= {Coverage.NONE}
            and device.name not in library.account.served_elsewhere
        ]
        if without:
            notices.append(f"never had code for {device.name}: {_some(without)}")
    return notices


def listing_notices(listing: Listing) -> list[str]:
    """Say what in the tree is left alone because it lies outside, or belongs to others."""
    notices = []
    if listing.outward:
        links = count_text(len(listing.outward), "symbolic link")
        notices.append(f"{links} to libraries outside: left alone, {_some(listing.outward)}")
    if listing.caches:
        notices.append(f"package caches are left alone: {_some(listing.caches)}")
    return notices


def sharing_notices(shared: Sequence[str]) -> list[str]:
    """Say that the disk is not freed of what something outside still holds."""
    if not shared:
        return []
    files = count_text(len(shared), "file")
    return [
        f"{files} had hard links outside, as package caches make them; "
        f"the old content stays there: {_some(shared)}"
    ]


def _some(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
