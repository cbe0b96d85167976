"""Profiles of a run: which kernels they list.

Understood are the PyTorch profiler's trace (Chrome's JSON, also gzipped), Nsight Systems' exports
(SQLite, JSON lines) and its statistics as JSON.
"""

from __future__ import annotations

import gzip
import sqlite3
import stat
import zlib
from contextlib import closing
from typing import TYPE_CHECKING, Any

from wheelslim.errors import Place, StorageError, UsageError
from wheelslim.kernels.json_stream import JsonStreamError, objects
from wheelslim.kernels.used import UsedKernels

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from wheelslim.kernels.json_stream import Readable

_SQLITE = b"SQLite format 3\0"
_GZIP = b"\x1f\x8b"
_KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
_GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
_NAME_COLUMNS = ("mangledName", "demangledName", "shortName")
"""Best first: a mangled name needs no guessing (recorded since Nsight Systems 2022; documented)."""

_NAME_KEYS = ("Name", "Kernel Name")
"""What ``nsys stats --format json`` calls the kernel in its kernel reports."""


def read_used_kernels(path: Path) -> UsedKernels:
    """Return the kernels that the profile at ``path`` lists.

    Raises:
        UsageError: no profile that is understood, or one without kernels.
        StorageError: the file cannot be read.
    """
    place = Place(artifact=str(path))
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # It is read twice, and a pipe might never end.
            raise UsageError("the profile cannot be read: this is no file")
        with path.open("rb") as file:
            head = file.read(len(_SQLITE))
        if head == _SQLITE:
            names = _sqlite_names(path)
        else:
            with gzip.open(path) if head.startswith(_GZIP) else path.open("rb") as file:
                names = set(_json_names(file))
    except (EOFError, zlib.error, gzip.BadGzipFile, JsonStreamError, sqlite3.Error) as error:
        raise UsageError(
            f"the profile cannot be read: {error}",
            place=place,
            expected="a PyTorch profiler trace, or an export of Nsight Systems as SQLite or JSON",
        ) from error
    except OSError as error:
        raise StorageError(f"the profile cannot be read: {error.strerror}", place=place) from error
    except UsageError as error:
        raise error.at(artifact=str(path)) from error
    names.discard("")
    if not names:
        raise UsageError(
            "the profile lists no kernels",
            place=place,
            hint="Record with ProfilerActivity.CUDA, or with nsys profile --trace cuda",
        )
    return UsedKernels(frozenset(names))


def _json_names(file: Readable) -> Iterator[str]:
    strings: list[Any] = []
    for event in objects(file, array_key="traceEvents"):
        if isinstance(event.get("data"), list) and not strings:
            strings = event["data"]  # The first line of Nsight Systems' JSON: strings that others number.
        elif isinstance(kernel := _inner(event, "CudaEvent", "kernel"), dict):
            yield _numbered(strings, kernel)
        elif "ph" in event:
            name = event.get("name")
            if str(event.get("cat", "")).lower() == "kernel" and isinstance(name, str):
                yield name
        else:
            named = next((event[key] for key in _NAME_KEYS if isinstance(event.get(key), str)), "")
            if not named.startswith("[CUDA "):
                yield named


def _inner(event: dict[str, Any], *keys: str) -> object:
    value: object = event
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _numbered(strings: list[Any], kernel: dict[str, Any]) -> str:
    for column in _NAME_COLUMNS:
        number = kernel.get(column)
        if isinstance(number, str) and not number.isdecimal():
            return number
        if number is not None and int(number) < len(strings) and isinstance(strings[int(number)], str):
            return str(strings[int(number)])
    return ""


def _sqlite_names(path: Path) -> set[str]:
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if _GRAPHS in tables and database.execute(f"SELECT 1 FROM {_GRAPHS} LIMIT 1").fetchone():  # noqa: S608
            raise UsageError(
                "the profile holds CUDA graphs as a whole, without the kernels in them",
                hint="Record again with nsys profile --cuda-graph-trace=node",
            )
        if _KERNELS not in tables or "StringIds" not in tables:
            return set()
        present = {row[1] for row in database.execute(f"PRAGMA table_info({_KERNELS})")}
        columns = [column for column in _NAME_COLUMNS if column in present]
        if not columns:
            return set()
        query = f"SELECT DISTINCT {', '.join(columns)} FROM {_KERNELS}"  # noqa: S608 - names from a constant
        rows = database.execute(query).fetchall()
        wanted = {number for row in rows for number in row if number is not None}
        strings = {
            number: value
            for number, value in database.execute("SELECT id, value FROM StringIds")
            if number in wanted and isinstance(value, str)
        }
    return {next((strings[number] for number in row if strings.get(number)), "") for row in rows}
