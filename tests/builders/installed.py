"""Installed distributions, as pip leaves them, and records of conda packages, as conda does.

RECORD as in "Recording installed projects", ``conda-meta`` as conda 24 writes it.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from typing import TYPE_CHECKING, Any

from builders.wheel import record_hash

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MTIME_NS = 1_700_000_000_123_456_789


def install(
    site: Path, name: str, files: Mapping[str, bytes], *, version: str = "1.0", record: bool = True
) -> Path:
    """Put a distribution into the directory ``site``; returns its dist-info directory.

    Paths of ``files`` count from ``site``; ``../bin/x`` leads out of it. RECORD's own row is last.
    """
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()
    members = {**files, f"{info}/METADATA": metadata, f"{info}/INSTALLER": b"pip\n"}
    rows = []
    for path, data in members.items():
        target = site / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        rows.append((path, record_hash(data), str(len(data))))
    if record:
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([*rows, (f"{info}/RECORD", "", "")])
        (site / info / "RECORD").write_text(out.getvalue(), encoding="utf-8")
    return site / info


def conda_record(prefix: Path, name: str, paths: list[str], **more: Mapping[str, Any]) -> Path:
    """Write the record of a conda package that holds ``paths``; ``more`` changes entries by path."""
    entries = []
    for path in paths:
        target = prefix / path
        digest = hashlib.sha256(target.read_bytes()).hexdigest()
        entry: dict[str, Any] = {
            "_path": path,
            "path_type": "softlink" if target.is_symlink() else "hardlink",
            "sha256": digest,
            "sha256_in_prefix": digest,
            "size_in_bytes": target.stat().st_size,
        }
        entries.append({**entry, **more.get(path, {})})
    record = {
        "build": "0",
        "files": paths,
        "md5": "0" * 32,
        "name": name,
        "paths_data": {"paths": entries, "paths_version": 1},
        "sha256": "1" * 64,
        "size": 12345,
        "version": "1.0",
    }
    place = prefix / "conda-meta" / f"{name}-1.0-0.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(record, indent=2, sort_keys=True), encoding="utf-8")
    return place


def record_faults(site: Path) -> list[str]:
    """Rows of every RECORD below ``site`` that are not true of the files, as text."""
    faults = []
    for record in sorted(site.rglob("*.dist-info/RECORD")):
        base = record.parent.parent
        for path, digest, size in csv.reader(io.StringIO(record.read_text(encoding="utf-8"))):
            if not (base / path).exists():
                faults.append(f"{path} is missing")
            elif digest:
                data = (base / path).read_bytes()
                if (digest, size) != (record_hash(data), str(len(data))):
                    faults.append(f"{path} has other bytes")
    return faults


def conda_faults(prefix: Path) -> list[str]:
    """What ``conda doctor`` would call missing or altered: paths whose hash in the prefix is another.

    rattler writes that hash only where it is another than that of the packed file.
    """
    faults = []
    for place in sorted((prefix / "conda-meta").glob("*.json")):
        record = json.loads(place.read_text(encoding="utf-8"))
        faults += [f"{path} is missing" for path in record["files"] if not (prefix / path).exists()]
        for entry in record["paths_data"]["paths"]:
            path = prefix / entry["_path"]
            digests = [hashlib.sha256(path.read_bytes()).hexdigest()] if path.exists() else []
            if path.is_symlink():  # rattler writes the hash of the link's text.
                digests.append(hashlib.sha256(os.readlink(path).encode()).hexdigest())  # noqa: PTH115
            if digests and entry.get("sha256_in_prefix", entry["sha256"]) not in digests:
                faults.append(f"{entry['_path']} is altered")
            if digests and entry["sha256"] != digests[0] and not entry.get("prefix_placeholder"):
                faults.append(f"{entry['_path']} is not what was packed")
    return faults
