"""The options about kernels, storage and loose device code, as people run them."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from builders import fatbin as make
from builders.cubin import cubin
from builders.library import CudaLibrary
from builders.wheel import Wheel
from corpus.recipes import BY_NAME, PARTS
from judges.programs import must

if TYPE_CHECKING:
    from collections.abc import Callable

    from judges.cuobjdump import Cuobjdump

SOURCE = Path(__file__).parents[2] / "src"


def wheelslim(*words: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "COLUMNS": "80"}
    command = [sys.executable, "-m", "wheelslim", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=120)


def pruned(wheel: Path, *words: str | Path) -> tuple[Path, dict[str, Any]]:
    """Prune into a directory of its own; gives the new wheel and the report."""
    out = wheel.parent / "out"
    done = wheelslim("prune", wheel, "-o", out, "--json", *words)
    assert done.returncode == 0, done.stderr
    (report,) = json.loads(done.stdout)["artifacts"]
    check_record(Path(report["output"]))
    proved = wheelslim("verify", wheel, report["output"])
    assert proved.returncode == 0, proved.stdout + proved.stderr
    return Path(report["output"]), report


def check_record(wheel: Path) -> None:
    """RECORD names every member with its true hash, and no other."""
    with zipfile.ZipFile(wheel) as archive:
        record = next(name for name in archive.namelist() if name.endswith(".dist-info/RECORD"))
        rows = dict(line.split(",", 1) for line in archive.read(record).decode().splitlines())
        assert set(rows) == set(archive.namelist())
        for name, row in rows.items():
            if name != record:
                digest = hashlib.sha256(archive.read(name)).digest()
                expected = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
                assert row == f"sha256={expected},{archive.getinfo(name).file_size}"


@pytest.fixture
def numbered(corpus: Callable[[str], Path], tmp_path: Path) -> Path:
    files = {"pkg/many.so": corpus("many_containers").read_bytes(), "pkg/__init__.py": b""}
    return Wheel(files).write(tmp_path)


def kernels(cuobjdump: Cuobjdump, wheel: Path) -> set[str]:
    library = wheel.parent / "library.so"
    with zipfile.ZipFile(wheel) as archive:
        library.write_bytes(archive.read("pkg/many.so"))
    said = must([str(cuobjdump.program), "-symbols", "-all", str(library)])
    return set(re.findall(r"^FUNC +\w+ +\w+ +ENTRY +_Z\d+(\w+?)P", said, re.MULTILINE))


def test_drop_kernels(numbered: Path, cuobjdump: Cuobjdump) -> None:
    output, report = pruned(
        numbered, "-a", "sm_86", "--drop-kernels", "kernel_", "--keep-kernels", r"kernel_\d\("
    )
    assert kernels(cuobjdump, output) == {"add_kernel", *(f"kernel_{number}" for number in range(10))}
    (library,) = report["libraries"]
    assert library["kernels"]["containers"] == {"emptied": 30, "mixed": 0, "unlisted": 0}
    assert library["kernels"]["operators_gone"] == sorted(f"kernel_{number}" for number in range(10, 40))
    assert any("30 of 42 containers" in notice for notice in report["notices"])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ("--drop-kernels", "kernel_1", "--drop-kernels", "flsh"),
            "--drop-kernels flsh matches no kernel that",
        ),
        (
            ("--drop-kernels", "kernel_1", "--keep-kernels", "flsh"),
            "--keep-kernels flsh matches no kernel that",
        ),
        (("--inference-only",), "--inference-only changes nothing: its list speaks of no kernel in here"),
        (("--kernels-used", "trace.json"), "--kernels-used: no kernel that the profile lists is in here"),
    ],
)
def test_what_finds_no_kernel_is_told(
    numbered: Path, tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    event = {"ph": "X", "cat": "kernel", "name": "other(float*)", "ts": 1, "dur": 1}
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": [event]}))
    given = [str(tmp_path / word) if word == "trace.json" else word for word in words]
    _, report = pruned(numbered, "-a", "sm_86", *given)
    assert [notice for notice in report["notices"] if says in notice]
    assert not [notice for notice in report["notices"] if "kernel_1 matches" in notice]


def test_kernels_used(numbered: Path, cuobjdump: Cuobjdump, tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "kernel", "name": "kernel_7(float*, int)", "ts": 1, "dur": 1}
    trace = tmp_path / "trace.json"
    trace.write_text(json.dumps({"traceEvents": [event, {**event, "name": "add_kernel(float const*, ...)"}]}))
    output, report = pruned(numbered, "-a", "sm_86", "--kernels-used", trace)
    assert kernels(cuobjdump, output) == {"add_kernel", "kernel_7"}
    assert not [notice for notice in report["notices"] if "the profile lists" in notice]
    assert report["libraries"][0]["kernels"]["kernels"] == {"before": 41, "gone": 39}


def test_inference_only_speaks_of_torch(tmp_path: Path) -> None:
    def container(name: str) -> bytes:
        return make.container([make.compressed(make.Entry(cubin([name]), sm=86), "zstd")])

    library = CudaLibrary((container("_Z8backwardPf"), container("_Z7forwardPf"))).build().data
    wheel = Wheel({"torch/lib/libtorch_cuda.so": library, "other/libother.so": library}).write(tmp_path)
    _, report = pruned(wheel, "-a", "sm_86", "--inference-only", "--force")
    emptied = {one["path"]: one["kernels"]["containers"]["emptied"] for one in report["libraries"]}
    assert emptied == {"torch/lib/libtorch_cuda.so": 1, "other/libother.so": 0}


def test_recompress(corpus: Callable[[str], Path], cuobjdump: Cuobjdump, tmp_path: Path) -> None:
    wheel = Wheel({"pkg/plain.so": corpus("plain").read_bytes()}).write(tmp_path)
    usual, _ = pruned(wheel, "-a", "sm_90")
    before = extracted(usual, "pkg/plain.so", tmp_path / "usual.so")
    smaller, report = pruned(wheel, "-a", "sm_90", "--recompress", "zstd", "--force")
    after = extracted(smaller, "pkg/plain.so", tmp_path / "smaller.so")
    assert cuobjdump.cubins(after) == cuobjdump.cubins(before)
    assert report["libraries"][0]["size"]["after"] < before.stat().st_size


def test_concatenated_entries_are_split(cuobjdump: Cuobjdump, tmp_path: Path) -> None:
    part = (PARTS / "concatenated_suffixes.fatbin").read_bytes()
    library = CudaLibrary((part, make.container(["sm_75"]))).build().data
    wheel = Wheel({"pkg/concatenated.so": library}).write(tmp_path)
    output, _ = pruned(wheel, "-a", "sm_80", "-a", "sm_120")
    whole = tmp_path / "whole.so"
    whole.write_bytes(library)
    kept = cuobjdump.cubins(extracted(output, "pkg/concatenated.so", tmp_path / "kept.so"))
    assert {word for word, _ in kept} == {"sm_80", "sm_120"}
    assert kept <= cuobjdump.cubins(whole)


def extracted(wheel: Path, member: str, target: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        target.write_bytes(archive.read(member))
    return target


def loose_wheel(directory: Path) -> Path:
    digest = "0" * 64
    files = {
        "pkg/cubins/fmhaSm100fKernel.cubin": cubin(["k"], sm=100),
        "pkg/cubins/fmhaSm103aKernel.cubin": cubin(["k"], sm=103),
        "pkg/cubins/checksums.txt": f"{digest}  fmhaSm103aKernel.cubin\n".encode(),
        "pkg/many.fatbin": (PARTS / "scale.fatbin").read_bytes(),
        "pkg/__init__.py": b"",
    }
    return Wheel(files, pure=True, tag="py3-none-any").write(directory)


def test_loose_code_goes_and_the_books_stay_true(cuobjdump: Cuobjdump, tmp_path: Path) -> None:
    output, report = pruned(loose_wheel(tmp_path), "-a", "sm_100")
    with zipfile.ZipFile(output) as archive:
        names = set(archive.namelist())
        assert "pkg/cubins/fmhaSm100fKernel.cubin" in names
        assert "pkg/cubins/fmhaSm103aKernel.cubin" not in names
        assert "fmhaSm103a" in archive.read("pkg/cubins/checksums.txt").decode()
    assert report["dropped"] == ["pkg/cubins/fmhaSm103aKernel.cubin"]
    fatbin = extracted(output, "pkg/many.fatbin", tmp_path / "many.fatbin")
    assert cuobjdump.listing(fatbin) == {"sm_100": 1}


def test_a_target_that_loose_code_never_served_is_exit_4(tmp_path: Path) -> None:
    wheel = Wheel({"pkg/k_sm100a.cubin": cubin(["k"], sm=100)}, pure=True, tag="py3-none-any").write(tmp_path)
    done = wheelslim("prune", wheel, "-o", tmp_path / "out", "-a", "sm_90")
    assert done.returncode == 4
    assert "sm_100a" in done.stderr
    assert not list((tmp_path / "out").glob("*.whl"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--drop-kernels", "("), "regular expression"),
        (("--kernels-used", "EMPTY"), "lists no kernels"),
        (("--kernels-used", "ABSENT"), "ABSENT"),
        (("--recompress", "lz4"), "lz4"),
    ],
)
def test_wrong_words(numbered: Path, tmp_path: Path, words: tuple[str, str], says: str) -> None:
    empty = tmp_path / "EMPTY"
    empty.write_text('{"traceEvents": []}')
    option, value = words
    value = str(tmp_path / value) if value.isupper() else value
    done = wheelslim("prune", numbered, "-o", tmp_path / "out", "-a", "sm_86", option, value)
    assert done.returncode in (2, 5)
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_environments_know_the_same_options(cuobjdump: Cuobjdump, tmp_path: Path) -> None:
    site = tmp_path / "venv" / "lib" / "python3.11" / "site-packages"
    with zipfile.ZipFile(loose_wheel(tmp_path)) as archive:
        archive.extractall(site)
    library = site / "pkg" / "many.so"
    library.write_bytes(BY_NAME["many_containers"].path.read_bytes())
    trace = tmp_path / "trace.json"
    trace.write_text(json.dumps([{"ph": "X", "cat": "kernel", "name": "kernel_7(float*, int)"}]))
    words = ("--recompress", "zstd", "--kernels-used", trace, "--json")
    done = wheelslim("env", tmp_path / "venv", "-a", "sm_100", "-a", "sm_86", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (site / "pkg/cubins/fmhaSm103aKernel.cubin").exists()
    assert (site / "pkg/cubins/fmhaSm100fKernel.cubin").exists()
    record = next(site.glob("*.dist-info/RECORD")).read_text()
    assert "fmhaSm103a" not in record
    assert cuobjdump.listing(site / "pkg/many.fatbin") == {"sm_86": 1, "sm_100": 1}
    said = must([str(cuobjdump.program), "-symbols", "-all", str(library)])
    assert set(re.findall(r"ENTRY +_Z\d+(\w+?)P", said)) == {"kernel_7"}
