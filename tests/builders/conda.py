"""Conda packages with a true paths.json, made with tarfile, zipfile, bz2 and zstandard only.

``.conda`` as in CEP 35, ``info/paths.json`` as in CEP 34.
"""

from __future__ import annotations

import bz2
import hashlib
import io
import json
import tarfile
import zipfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import zstandard

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

MTIME = 1_600_000_000
DATE = (2026, 1, 2, 3, 4, 6)


@dataclass(frozen=True)
class Item:
    """One tar member; ``placeholder`` is the build prefix that its paths.json entry names."""

    name: str
    data: bytes = b""
    type: bytes = tarfile.REGTYPE
    link: str = ""
    mode: int = 0o644
    mtime: float = MTIME
    owner: tuple[int, str, int, str] = (0, "", 0, "")
    pax: Mapping[str, str] = field(default_factory=dict)
    format: Literal[0, 1, 2] = tarfile.PAX_FORMAT
    placeholder: str = ""
    file_mode: str = "binary"

    def info(self) -> tarfile.TarInfo:
        """The member as tarfile knows it."""
        info = tarfile.TarInfo(self.name)
        info.type, info.linkname, info.mode, info.mtime = self.type, self.link, self.mode, self.mtime
        info.uid, info.uname, info.gid, info.gname = self.owner
        info.size = len(self.data)
        info.pax_headers = dict(self.pax)
        return info


def symlink(name: str, target: str) -> Item:
    """A symbolic link."""
    return Item(name, type=tarfile.SYMTYPE, link=target, mode=0o777)


def hardlink(name: str, target: str) -> Item:
    """A hard link to an earlier file."""
    return Item(name, type=tarfile.LNKTYPE, link=target)


def directory(name: str) -> Item:
    """A directory of its own."""
    return Item(name, type=tarfile.DIRTYPE, mode=0o755)


def tar(items: Sequence[Item], pax_headers: Mapping[str, str] | None = None) -> bytes:
    """The items as an uncompressed tar."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT, pax_headers=pax_headers) as archive:
        for item in items:
            archive.format = item.format
            archive.addfile(item.info(), io.BytesIO(item.data))
    return out.getvalue()


@dataclass(frozen=True)
class CondaPackage:
    """A package to be built; ``info`` adds or replaces metadata (None leaves one out)."""

    items: Sequence[Item]
    name: str = "cudademo"
    version: str = "1.0"
    build: str = "h0_0"
    subdir: str = "linux-64"
    info: Mapping[str, bytes | None] = field(default_factory=dict)
    index: Mapping[str, Any] = field(default_factory=dict)
    entries: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    level: int = 3

    @property
    def stem(self) -> str:
        """The file name without its extension."""
        return f"{self.name}-{self.version}-{self.build}"

    def info_items(self) -> list[Item]:
        """The members of info/."""
        index = {
            "arch": "x86_64",
            "build": self.build,
            "build_number": 0,
            "depends": [],
            "license": "MIT",
            "name": self.name,
            "platform": "linux",
            "subdir": self.subdir,
            "timestamp": 1_600_000_000_000,
            "version": self.version,
            **self.index,
        }
        listed = [item.name for item in self.items if item.type != tarfile.DIRTYPE]
        files: dict[str, bytes | None] = {
            "info/index.json": json.dumps(index, indent=2).encode(),
            "info/paths.json": json.dumps(self.paths(), indent=2, sort_keys=True).encode(),
            "info/files": "".join(f"{name}\n" for name in listed).encode(),
            "info/about.json": b'{"home": "https://example.org"}',
            "info/recipe/meta.yaml": b"package:\n  name: cudademo\n",
            **self.info,
        }
        return [Item(name, data) for name, data in files.items() if data is not None]

    def paths(self) -> dict[str, Any]:
        """What paths.json has to say; ``entries`` are laid over the single entries."""
        contents: dict[str, bytes] = {}
        entries = []
        for item in self.items:
            if item.type == tarfile.DIRTYPE:
                continue
            entry: dict[str, Any] = {"_path": item.name, "path_type": "hardlink"}
            if item.type == tarfile.SYMTYPE:
                entry["path_type"] = "softlink"
                base = item.name.rpartition("/")[0]
                target = f"{base}/{item.link}" if base else item.link
                data = contents.get(target, b"")
            else:
                data = contents[item.link] if item.type == tarfile.LNKTYPE else item.data
                contents[item.name] = data
            entry |= {"sha256": hashlib.sha256(data).hexdigest(), "size_in_bytes": len(data)}
            if item.placeholder:
                entry |= {"prefix_placeholder": item.placeholder, "file_mode": item.file_mode}
            entries.append({**entry, **self.entries.get(item.name, {})})
        return {"paths": entries, "paths_version": 1}

    def write(self, folder: Path, kind: str = ".conda", file_name: str = "") -> Path:
        """Write the package under its own name, or another, and return the path."""
        path = folder / (file_name or f"{self.stem}{kind}")
        if kind == ".tar.bz2":
            path.write_bytes(bz2.compress(tar([*self.info_items(), *self.items])))
        else:
            write_conda(path, self.stem, tar(self.info_items()), tar(self.items), self.level)
        return path


def write_conda(path: Path, stem: str, info: bytes, payload: bytes, level: int = 3) -> None:
    """Write a ``.conda`` of two tars."""
    pack = zstandard.ZstdCompressor(level=level).compress
    members = {
        "metadata.json": b'{"conda_pkg_format_version": 2}',
        f"pkg-{stem}.tar.zst": pack(payload),
        f"info-{stem}.tar.zst": pack(info),
    }
    write_zip(path, members)


def write_zip(path: Path, members: Mapping[str, bytes], method: int = zipfile.ZIP_STORED) -> None:
    """Write a zip of these members."""
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, DATE)
            info.compress_type = method
            archive.writestr(info, data)


def tars_of(path: Path) -> dict[str, bytes]:
    """The tars of a package, decompressed: ``info`` and ``pkg``, or ``all``."""
    if path.name.endswith(".tar.bz2") or path.read_bytes()[:3] == b"BZh":
        return {"all": bz2.decompress(path.read_bytes())}
    with zipfile.ZipFile(path) as archive:
        return {
            name.partition("-")[0]: zstandard.ZstdDecompressor().stream_reader(archive.read(name)).read()
            for name in archive.namelist()
            if name.endswith(".tar.zst")
        }


def contents_of(path: Path) -> dict[str, bytes]:
    """Every regular file of a package by its name, hard links with the content of their file."""
    found = {}
    for data in tars_of(path).values():
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive:
                file = archive.extractfile(member) if member.isfile() or member.islnk() else None
                if file is not None:
                    found[member.name] = file.read()
    return found


def members_of(path: Path) -> dict[str, list[tarfile.TarInfo]]:
    """The members of each tar as tarfile reads them."""
    found = {}
    for name, data in tars_of(path).items():
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            found[name] = archive.getmembers()
    return found
