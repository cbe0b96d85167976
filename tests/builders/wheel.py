"""Wheels with a true RECORD, made with the standard library's zipfile only.

RECORD as in the binary distribution format specification: path, ``sha256=`` and the URL-safe base64 digest
without padding, size in bytes; no hash for RECORD itself and its signatures.
"""

from __future__ import annotations

import base64
import hashlib
import zipfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DATE = (2026, 1, 2, 3, 4, 6)
"""Date of every member unless told otherwise; zip keeps even seconds only."""


@dataclass(frozen=True)
class Member:
    """A file in the wheel. ``mode`` is that of a regular file, permission bits only."""

    data: bytes
    mode: int = 0o644
    stored: bool = False
    date: tuple[int, int, int, int, int, int] = DATE
    extra: bytes = b""
    comment: bytes = b""


@dataclass(frozen=True)
class Wheel:
    """A wheel to be built.

    ``files`` are bytes or Members by their path. ``record`` replaces RECORD's text; ``in_record`` replaces
    single rows (None leaves the row out). ``dist_info`` adds files to the .dist-info directory.
    """

    files: Mapping[str, Member | bytes]
    name: str = "cuda-demo"
    version: str = "1.0"
    tag: str = "py3-none-manylinux_2_28_x86_64"
    build: str = ""
    pure: bool = False
    metadata: str = ""
    dist_info: Mapping[str, Member | bytes] = field(default_factory=dict)
    in_record: Mapping[str, str | None] = field(default_factory=dict)
    record: bytes | None = None

    @property
    def folder(self) -> str:
        """Name of the .dist-info directory."""
        return f"{self.name.replace('-', '_')}-{self.version}.dist-info"

    @property
    def file_name(self) -> str:
        """The name that the wheel should have."""
        build = f"-{self.build}" if self.build else ""
        return f"{self.name.replace('-', '_')}-{self.version}{build}-{self.tag}.whl"

    def members(self) -> dict[str, Member]:
        """All members in order, RECORD last."""
        wheel_file = f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: {str(self.pure).lower()}\n"
        wheel_file += f"Build: {self.build}\n" if self.build else ""
        python, abi, platforms = self.tag.rsplit("-", 2)
        wheel_file += "".join(f"Tag: {python}-{abi}-{platform}\n" for platform in platforms.split("."))
        metadata = f"Metadata-Version: 2.1\nName: {self.name}\nVersion: {self.version}\n{self.metadata}"
        info = {"METADATA": metadata.encode(), "WHEEL": wheel_file.encode(), **self.dist_info}
        given = {**self.files, **{f"{self.folder}/{name}": data for name, data in info.items()}}
        members = {name: one if isinstance(one, Member) else Member(one) for name, one in given.items()}
        text = self.record if self.record is not None else self.true_record(members).encode()
        members[f"{self.folder}/RECORD"] = Member(text)
        return members

    def true_record(self, members: Mapping[str, Member]) -> str:
        """RECORD's text, with the rows of ``in_record`` replaced."""
        record = f"{self.folder}/RECORD"
        rows = {
            name: f"{quoted(name)},{record_hash(member.data)},{len(member.data)}"
            for name, member in members.items()
        }
        rows[record] = f"{record},,"
        for name in members:
            if name in {f"{record}.jws", f"{record}.p7s"}:
                rows[name] = f"{name},,"
        kept = {name: self.in_record.get(name, row) for name, row in rows.items()}
        return "".join(f"{row}\n" for row in kept.values() if row is not None)

    def write(self, directory: Path, file_name: str = "") -> Path:
        """Write the wheel under its own name, or another, and return the path."""
        path = directory / (file_name or self.file_name)
        with zipfile.ZipFile(path, "w") as archive:
            for name, member in self.members().items():
                info = zipfile.ZipInfo(name, member.date)
                info.external_attr = (0o100000 | member.mode) << 16
                info.compress_type = zipfile.ZIP_STORED if member.stored else zipfile.ZIP_DEFLATED
                info.extra, info.comment = member.extra, member.comment
                archive.writestr(info, member.data)
        return path


def record_hash(data: bytes) -> str:
    """The hash column of a RECORD row."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def quoted(name: str) -> str:
    """A path as a CSV field."""
    return '"' + name.replace('"', '""') + '"' if "," in name or '"' in name else name
