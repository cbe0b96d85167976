"""``--drop`` on wheels and trees: what is asked for goes, what others refer to stays."""

from __future__ import annotations

import csv
import json
import zipfile
from typing import TYPE_CHECKING

import pytest

from builders.library import CudaLibrary
from builders.wheel import Member, Wheel
from integration.test_prune_command import wheelslim
from wheelslim.archive.opener import open_artifact
from wheelslim.groups.plan import plan_drops
from wheelslim.groups.rules import load_rules, make_drop_request

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FILES: dict[str, Member | bytes] = {
    "demo/__init__.py": b"from .tests.kept import answer\n",
    "demo/reader.py": b"from pathlib import Path\ntext = Path(__file__).with_name('defs.h').read_text()\n",
    "demo/tests/__init__.py": b"",
    "demo/tests/kept.py": b"from .also import answer\n",
    "demo/tests/also.py": b"answer = 42\n",
    "demo/tests/test_it.py": b"import demo\n",
    "demo/cli/tests/run.py": b"def main(): pass\n",
    "demo/include/defs.h": b"#include <inner.h>\n",
    "demo/include/inner.h": b"#define INNER\n",
    "demo/include/other.h": b"#define OTHER\n",
    "demo/lib/libdemo.a": b"!<arch>\n",
    "demo/lib/demo-config.cmake": b"set(x 1)\n",
    "demo/__init__.pyi": b"answer: int\n",
    "demo/bin/ptxas": b"\x7fELF" + bytes(60),
}


@pytest.fixture
def wheel(corpus: Callable[[str], Path], tmp_path: Path) -> Path:
    files = {**FILES, "demo/libdemo.so": corpus("many_containers").read_bytes()}
    info = {"entry_points.txt": b"[console_scripts]\ndemo = demo.tests.test_it:main\n"}
    (tmp_path / "in").mkdir()
    return Wheel(files, name="demo", dist_info=info).write(tmp_path / "in")


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        listed = {
            row[0] for row in csv.reader(archive.read("demo-1.0.dist-info/RECORD").decode().splitlines())
        }
        assert listed == set(archive.namelist())
        return listed


def test_groups_go_and_what_others_refer_to_stays(wheel: Path, tmp_path: Path) -> None:
    words = ("--drop", "headers,static,cmake,tests,pyi,tools", "--json")
    result = wheelslim("prune", "-a", "sm_86", wheel, "-o", tmp_path / "out", *words)
    assert result.returncode == 0, result.stderr
    (out,) = (tmp_path / "out").iterdir()
    gone = names(wheel) - names(out)
    assert gone == {
        "demo/include/other.h", "demo/lib/libdemo.a", "demo/lib/demo-config.cmake", "demo/__init__.pyi",
    }  # fmt: skip
    said = json.loads(result.stdout)["artifacts"][0]
    assert set(said["dropped"]) == gone
    with zipfile.ZipFile(out) as archive:
        stamp = json.loads(archive.read("demo-1.0.dist-info/wheelslim.json"))
    assert set(stamp["dropped_members"]) == gone


def test_a_test_that_nothing_imports_goes(tmp_path: Path) -> None:
    files = {name: data for name, data in FILES.items() if name != "demo/__init__.py"}
    wheel = Wheel({**files, "demo/__init__.py": b""}, name="demo").write(tmp_path)
    with open_artifact(wheel) as artifact:
        plan = plan_drops(artifact, make_drop_request("tests", (), None))
    assert {name for name in FILES if name.startswith("demo/tests/")} == set(plan.dropped)


def test_a_profile_keeps_what_compilers_need_and_a_name_drops_it(tmp_path: Path) -> None:
    header = "triton/backends/nvidia/include/cuda.h"
    wheel = Wheel({"triton/__init__.py": b"name = 'cuda.h'\n", header: b"\n"}, name="triton").write(tmp_path)
    with open_artifact(wheel) as artifact:
        assert header in plan_drops(artifact, make_drop_request("", (), "inference")).kept
        assert header in plan_drops(artifact, make_drop_request("headers", (), None)).dropped


def test_a_glob_always_goes(wheel: Path, tmp_path: Path) -> None:
    assert (
        wheelslim(
            "prune", "-a", "sm_86", wheel, "-o", tmp_path / "out", "--drop-glob", "**/defs.h"
        ).returncode
        == 0
    )
    (out,) = (tmp_path / "out").iterdir()
    assert names(wheel) - names(out) == {"demo/include/defs.h"}


def test_a_library_that_another_needs_stays(tmp_path: Path) -> None:
    needed = CudaLibrary((), register=False).build().data
    user = CudaLibrary((), register=False, needed=("libneeded.so",)).build().data
    files = {"demo/tests/libneeded.so": needed, "demo/tests/libalone.so": needed, "demo/user.so": user}
    wheel = Wheel(files, name="demo").write(tmp_path)
    with open_artifact(wheel) as artifact:
        plan = plan_drops(artifact, make_drop_request("tests", (), None))
    assert set(plan.dropped) == {"demo/tests/libalone.so"}
    assert plan.kept == {"demo/tests/libneeded.so": "needed by demo/user.so"}


def test_unused_libraries_of_a_tree(tmp_path: Path) -> None:
    """One is needed, one named in Python, one in data, one in code as immediates, one not at all."""
    site = tmp_path / "site-packages"
    site.mkdir()
    plain = CudaLibrary((), register=False).build().data
    for name in ("libneeded", "libnamed", "libindata", "libimmediates", "libnowhere"):
        (site / f"{name}.so.1").write_bytes(plain)
    (site / "user.so").write_bytes(CudaLibrary((), register=False, needed=("libneeded.so.1",)).build().data)
    (site / "use.py").write_text("import ctypes\nctypes.CDLL('libnamed.so.1')\n")
    tail = CudaLibrary((), register=False).build()
    (site / "data.so").write_bytes(with_section_bytes(tail.data, ".rodata", b"libindata.so.1\0"))
    code = b"\x48\xb8libimmed\x48\x89\x44\x24\x10\x48\xb8iates.so"
    (site / "code.so").write_bytes(with_section_bytes(tail.data, ".text", code))
    with open_artifact(tmp_path) as artifact:
        plan = plan_drops(artifact, make_drop_request("unused", (), None))
    assert plan.dropped == {"site-packages/libnowhere.so.1": "unused"}


def with_section_bytes(data: bytes, name: str, content: bytes) -> bytes:
    from io import BytesIO

    from elftools.elf.elffile import ELFFile

    section = ELFFile(BytesIO(data)).get_section_by_name(name)
    assert section is not None
    assert section["sh_size"] >= len(content)
    offset = section["sh_offset"]
    return data[:offset] + content + data[offset + len(content) :]


def test_unknown_words(wheel: Path) -> None:
    result = wheelslim("prune", "-a", "sm_86", wheel, "--drop", "headers,nonsense")
    assert result.returncode == 2
    assert "nonsense" in result.stderr
    assert "pycache" in result.stderr


def test_the_rules_hold_together() -> None:
    rules = load_rules()
    for profile in rules.profiles.values():
        assert set(profile.groups) <= set(rules.groups)
    assert all(group.what and group.stops for group in rules.groups.values())
