"""``wheelslim.json`` of an installed distribution: several runs become one account."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def parse(data: bytes) -> dict[str, Any]:
    """Parse a stamp; what does not parse counts as none."""
    try:
        stamp = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def renamed(stamp: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    """Return the stamp of one library under another name."""
    libraries = {new if name == old else name: entry for name, entry in stamp["libraries"].items()}
    return {**stamp, "libraries": libraries}


def merged(old: Mapping[str, Any], stamps: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Add the accounts of ``stamps``, in order, to ``old``.

    What a stamp says as a whole (version, targets) is that of the last; a library that was slimmed
    before keeps the hash and size that it was installed with. Adding a stamp again changes nothing.
    """
    result: dict[str, Any] = dict(old)
    libraries: dict[str, Any] = dict(_mapping(old.get("libraries")))
    dropped: dict[str, None] = dict.fromkeys(old.get("dropped_members") or ())
    for stamp in stamps:
        for name, entry in stamp["libraries"].items():
            libraries[name] = _chained(_mapping(libraries.get(name)), entry)
        dropped.update(dict.fromkeys(stamp["dropped_members"]))
        source = result.get("source_sha256")
        result |= stamp
        result["source_sha256"] = stamp.get("source_sha256") or source
    result["libraries"] = {name: libraries[name] for name in sorted(libraries)}
    result["dropped_members"] = sorted(dropped)
    return result


def _chained(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    if old.get("sha256_after") == new["sha256_after"]:
        return dict(old)
    if old.get("sha256_after") != new["sha256_before"]:
        return dict(new)
    gone = Counter(_mapping(old.get("dropped_entries"))) + Counter(new["dropped_entries"])
    return {
        **new,
        "size_before": old.get("size_before", new["size_before"]),
        "sha256_before": old.get("sha256_before", new["sha256_before"]),
        "dropped_entries": dict(gone),
    }


def _mapping(value: Any) -> Mapping[str, Any]:  # noqa: ANN401 - any JSON value
    return value if isinstance(value, dict) else {}
