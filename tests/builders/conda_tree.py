"""A directory made into the tree of a conda package: ``info/`` with a true paths.json, for ``cph create``."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

PLACEHOLDER = "/opt/build_env_" + "placehold_" * 24
"""A build prefix; clients put their own, shorter one in its place."""


def add_info(
    tree: Path,
    name: str,
    *,
    build: str = "h0_0",
    depends: Sequence[str] = (),
    placeholders: Mapping[str, str] | None = None,
) -> None:
    """Write ``info/`` for the files in ``tree``; ``placeholders`` maps names to ``text`` or ``binary``."""
    paths = []
    for path in sorted(tree.rglob("*")):
        relative = path.relative_to(tree).as_posix()
        if path.is_dir() and not path.is_symlink():
            continue
        entry: dict[str, object] = {
            "_path": relative,
            "path_type": "softlink" if path.is_symlink() else "hardlink",
        }
        if path.is_file():  # Through a link, as conda-build does it.
            entry |= {"sha256": sha256(path), "size_in_bytes": path.stat().st_size}
        if placeholders and relative in placeholders:
            entry |= {"file_mode": placeholders[relative], "prefix_placeholder": PLACEHOLDER}
        paths.append(entry)
    index = {
        "arch": "x86_64",
        "build": build,
        "build_number": 0,
        "depends": list(depends),
        "name": name,
        "platform": "linux",
        "subdir": "linux-64",
        "timestamp": 1_700_000_000_000,
        "version": "1.0",
    }
    info = tree / "info"
    info.mkdir()
    (info / "index.json").write_text(json.dumps(index, indent=2))
    (info / "paths.json").write_text(json.dumps({"paths": paths, "paths_version": 1}, indent=2))
    (info / "files").write_text("".join(f"{entry['_path']}\n" for entry in paths))
    (info / "about.json").write_text("{}")


def sha256(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def listing(tree: Path) -> dict[str, tuple[str, int, str]]:
    """What lies in a directory: type, permission bits, and content hash or link target, by name."""
    found = {}
    for path in sorted(tree.rglob("*")):
        name = path.relative_to(tree).as_posix()
        if path.is_symlink():
            found[name] = ("link", 0, str(path.readlink()))
        elif path.is_dir():
            found[name] = ("directory", 0, "")
        else:
            found[name] = ("file", path.stat().st_mode & 0o7777, sha256(path))
    return found
