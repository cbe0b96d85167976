"""Profiles as PyTorch and Nsight Systems write them."""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
import tracemalloc
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wheelslim.errors import StorageError, UsageError
from wheelslim.kernels.json_stream import JsonStreamError, objects
from wheelslim.kernels.trace import read_used_kernels

if TYPE_CHECKING:
    from pathlib import Path

GEMM, ADD = "ampere_sgemm_128x64_tn", "void at::native::add<4>(int, float*)"
EVENTS = [
    {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::add", "ts": 1, "dur": 2},
    {"ph": "X", "cat": "kernel", "name": ADD, "ts": 3, "dur": 4, "args": {"grid": [1, 1, 1], "stream": 7}},
    {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "ts": 5},
    {"ph": "X", "cat": "Kernel", "name": GEMM, "ts": 6},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 7},
]


def names(path: Path, content: bytes | str) -> frozenset[str]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_used_kernels(path).names


def chrome() -> str:
    return json.dumps(
        {"schemaVersion": 1, "deviceProperties": [{"id": 0}], "traceEvents": EVENTS, "traceName": "t"}
    )


def nsys_sqlite(
    path: Path, columns: tuple[str, ...], rows: list[tuple[int | None, ...]], graphs: int = 0
) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL)")
        database.executemany(
            "INSERT INTO StringIds VALUES (?, ?)",
            [(1, "_Z3addPf"), (2, ADD), (3, "add"), (4, GEMM), (5, "unused")],
        )
        declared = ", ".join(f"{column} INTEGER" for column in columns)
        database.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, {declared})")
        marks = ", ".join("?" for _ in columns)
        database.executemany(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0, {marks})", rows)
        if graphs:
            database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER)")
            database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (0)")
        database.commit()


def test_a_pytorch_trace_lists_its_kernels(tmp_path: Path) -> None:
    assert names(tmp_path / "t.json", chrome()) == {ADD, GEMM}
    assert names(tmp_path / "t.json.gz", gzip.compress(chrome().encode())) == {ADD, GEMM}
    assert names(tmp_path / "array.json", json.dumps(EVENTS, indent=1)) == {ADD, GEMM}


def test_what_profilers_write_and_json_forbids_is_read(tmp_path: Path) -> None:
    odd = chrome().replace('"ts": 1', '"ts": NaN').encode().replace(b"python", b"pyth\xffon\t")
    assert names(tmp_path / "odd.json", b"\xef\xbb\xbf" + odd) == {ADD, GEMM}


def test_nsight_sqlite_gives_mangled_names_where_it_has_them(tmp_path: Path) -> None:
    path = tmp_path / "report.sqlite"
    nsys_sqlite(path, ("demangledName", "shortName", "mangledName"), [(2, 3, 1), (4, 4, None), (2, 3, 1)])
    assert read_used_kernels(path).names == {"_Z3addPf", GEMM}


def test_older_nsight_sqlite_gives_demangled_names(tmp_path: Path) -> None:
    path = tmp_path / "report.sqlite"
    nsys_sqlite(path, ("demangledName", "shortName"), [(2, 3), (4, 4)])
    assert read_used_kernels(path).names == {ADD, GEMM}


def test_graphs_that_hide_their_kernels_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "report.sqlite"
    nsys_sqlite(path, ("demangledName",), [(2,)], graphs=1)
    with pytest.raises(UsageError, match="--cuda-graph-trace=node"):
        read_used_kernels(path)


def test_nsight_json_numbers_its_strings(tmp_path: Path) -> None:
    lines = [
        {"data": ["", "add", ADD, GEMM], "files": []},
        {"TraceProcessEvent": {"name": "1"}},
        {"CudaEvent": {"eventClass": 1, "memcpy": {"copyKind": 1}}},
        {"CudaEvent": {"eventClass": 3, "kernel": {"shortName": "1", "demangledName": "2"}}},
        {"CudaEvent": {"eventClass": 3, "kernel": {"shortName": 3, "demangledName": 3}}},
        {"CudaEvent": {"eventClass": 3, "kernel": {"shortName": "99"}}},
    ]
    assert names(tmp_path / "r.json", "\n".join(json.dumps(line) for line in lines)) == {ADD, GEMM}


def test_nsight_statistics_are_read(tmp_path: Path) -> None:
    rows = [{"Time (%)": 9.0, "Instances": 3, "Name": ADD}, {"Name": "[CUDA memcpy Host-to-Device]"}]
    assert names(tmp_path / "s.json", json.dumps(rows)) == {ADD}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no json",
        b"{",
        b'{"traceEvents": 5}',
        b'{"traceEvents": []}',
        b'[{"ph": "X", "cat": "cpu_op", "name": "aten::add"}]',
        b"SQLite format 3\0 but no database",
        b"\x1f\x8bno gzip",
        b"\x7fELF\x02\x01\x01",
    ],
)
def test_what_lists_no_kernels_is_refused(tmp_path: Path, content: bytes) -> None:
    """An empty list would drop every kernel there is."""
    with pytest.raises(UsageError) as caught:
        names(tmp_path / "t", content)
    assert caught.value.place.artifact == str(tmp_path / "t")


@pytest.mark.parametrize("cut", [1, 40, 200])
def test_a_trace_that_is_cut_off_is_refused(tmp_path: Path, cut: int) -> None:
    """The kernels behind the cut would be dropped."""
    with pytest.raises(UsageError, match="cannot be read"):
        names(tmp_path / "t.json", chrome()[:-cut])
    with pytest.raises(UsageError, match="cannot be read"):
        names(tmp_path / "t.json.gz", gzip.compress(chrome().encode())[: -cut - 8])


def test_a_file_that_is_not_there_is_an_io_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        read_used_kernels(tmp_path / "absent.json")


def test_a_long_trace_is_not_held(tmp_path: Path) -> None:
    event = json.dumps(EVENTS[2]).encode()
    with (tmp_path / "long.json").open("wb") as file:
        file.write(b'{"traceEvents": [')
        for _ in range(100_000):
            file.write(event + b",\n")
        file.write(event + b"]}")
        size = file.tell()
    tracemalloc.start()
    try:
        assert read_used_kernels(tmp_path / "long.json").names == {ADD}
        assert tracemalloc.get_traced_memory()[1] < 4 << 20 < size
    finally:
        tracemalloc.stop()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


class Trickle(io.BytesIO):
    """A file that gives a few bytes at a time, so that every value meets a border."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(3 if size else size)


@given(
    st.lists(st.dictionaries(st.text("abc", max_size=5), JSON, max_size=3), max_size=4),
    st.sampled_from([None, 1]),
)
def test_objects_come_out_as_json_says(values: list[dict[str, object]], indent: int | None) -> None:
    array = json.dumps(values, indent=indent)
    lines = "\n".join(json.dumps(value, indent=indent) for value in values)
    inside = json.dumps({"a": 1.5, "list": values, "b": [2]}, indent=indent)
    for text in (array, lines, inside):
        for file in (io.BytesIO(text.encode()), Trickle(text.encode())):
            assert list(objects(file, "list")) == values


@given(st.binary(max_size=60) | st.text(alphabet='{}[]":,0 ae', max_size=40).map(str.encode))
def test_any_bytes_give_objects_or_an_error(content: bytes) -> None:
    with suppress(JsonStreamError):
        assert all(isinstance(value, dict) for value in objects(io.BytesIO(content), "list"))
