"""The name of a wheel file, and the WHEEL file's build line.

Format: "Binary distribution format" of packaging.python.org (PEP 427, PEP 491):
``distribution-version(-build)?-python-abi-platform.whl``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from email.parser import HeaderParser
from typing import TYPE_CHECKING

from wheelslim.errors import ArchiveError, Place, UsageError

if TYPE_CHECKING:
    from email.message import Message

_BUILD_TAG = re.compile(r"[0-9][A-Za-z0-9_.]*")
_EXPECTED = "distribution-version(-build)-python-abi-platform.whl"


@dataclass(frozen=True, slots=True)
class WheelName:
    """The parts of the file name, as they stand in it; tags may be several, joined by dots."""

    distribution: str
    version: str
    build: str | None
    python: str
    abi: str
    platform: str

    @classmethod
    def parse(cls, filename: str) -> WheelName:
        """Split a file name into its parts.

        Raises:
            ArchiveError: it is no wheel name.
        """
        from packaging.utils import (
            InvalidWheelFilename,
            parse_wheel_filename,
        )

        try:
            parse_wheel_filename(filename)
        except InvalidWheelFilename as error:
            raise ArchiveError(
                "this is no name of a wheel",
                place=Place(artifact=filename),
                expected=_EXPECTED,
                found=str(error),
            ) from error
        parts = filename.removesuffix(".whl").split("-")
        build = parts[2] if len(parts) == 6 else None
        return cls(parts[0], parts[1], build, *parts[-3:])

    @classmethod
    def derive(cls, metadata: bytes, wheel: bytes) -> WheelName:
        """Make the name from METADATA (name, version) and WHEEL (tags, build).

        Raises:
            ArchiveError: a field is missing, or the parts make no wheel name.
        """
        about = _headers(metadata)
        build_info = _headers(wheel)
        name = _field(about, "Name", "METADATA")
        version = _field(about, "Version", "METADATA")
        tags = [tag.split("-") for tag in build_info.get_all("Tag", [])]
        if not tags or any(len(tag) != 3 for tag in tags):
            raise ArchiveError(
                "WHEEL states no usable tag",
                expected="lines such as 'Tag: py3-none-any'",
                found=", ".join("-".join(tag) for tag in tags) or "none",
            )
        # One file name states the product of its tag sets: keep each word once, in order.
        python, abi, platform = (".".join(dict.fromkeys(column)) for column in zip(*tags, strict=True))
        parts = [
            re.sub(r"[-_.]+", "_", name),
            version.replace("-", "_"),
            *([build] if (build := build_info.get("Build", "").strip()) else []),
            python,
            abi,
            platform,
        ]
        return cls.parse("-".join(parts) + ".whl")

    def with_build(self, tag: str) -> WheelName:
        """Return the name with another build tag.

        Raises:
            UsageError: the tag does not start with a digit or holds a character that it must not.
        """
        if not _BUILD_TAG.fullmatch(tag):
            raise UsageError(
                "this is no build tag of a wheel",
                expected="a digit, then letters, digits, '_' and '.'",
                found=repr(tag),
            )
        return replace(self, build=tag)

    def __str__(self) -> str:
        """The file name."""
        build = [self.build] if self.build else []
        parts = [self.distribution, self.version, *build, self.python, self.abi, self.platform]
        return "-".join(parts) + ".whl"


def _headers(data: bytes) -> Message:
    return HeaderParser().parsestr(data.decode("utf-8", "replace"))


def _field(message: Message, name: str, file: str) -> str:
    value = str(message.get(name, "")).strip()
    if not value:
        raise ArchiveError(f"{file} states no {name}", expected=f"a line '{name}: …'")
    return value


def with_build_line(wheel: bytes, tag: str) -> bytes:
    """Return the WHEEL file with the line ``Build: tag``, in place of an old one or after the tags.

    All other lines keep their bytes.
    """
    lines = wheel.splitlines(keepends=True)
    end = b"\r\n" if lines and lines[0].endswith(b"\r\n") else b"\n"
    build = b"Build: " + tag.encode("ascii") + end
    headers = next((index for index, line in enumerate(lines) if not line.strip()), len(lines))
    old = [index for index in range(headers) if lines[index].lower().startswith(b"build:")]
    if old:
        kept = [line for index, line in enumerate(lines) if index not in old[1:]]
        kept[old[0]] = build
        return b"".join(kept)
    tags = [index for index in range(headers) if lines[index].lower().startswith(b"tag:")]
    at = tags[-1] + 1 if tags else headers
    if at and not lines[at - 1].endswith((b"\n", b"\r")):
        lines[at - 1] += end
    return b"".join([*lines[:at], build, *lines[at:]])
