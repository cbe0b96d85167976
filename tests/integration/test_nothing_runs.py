"""No code of an artifact runs, no process starts and no socket opens, whatever a command does with it.

Every command runs under an audit hook (PEP 578) over packages whose every way of running leaves a mark.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from builders.conda import CondaPackage, Item
from builders.environment_trees import environment
from builders.wheel import Member, Wheel
from corpus.recipes import BY_NAME
from judges.programs import must, program

HOOK = """
import json, sys

FORBIDDEN = ("socket.", "urllib.", "http.", "ftplib.", "smtplib.", "subprocess.", "ctypes.dlopen", "pickle.",
             "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "pty.spawn", "marshal.loads")
place, log = sys.argv[1:3]
seen = []

def hook(event, arguments):
    told = event.startswith(FORBIDDEN) and not (event == "marshal.loads" and importing())
    if event == "import" and len(arguments) > 1 and str(arguments[1]).startswith(place):
        told = True
    if told:
        seen.append([event, repr(arguments)[:200]])
        raise RuntimeError(f"forbidden: {event}")

def importing():
    frame = sys._getframe(2)
    while frame is not None:
        if "importlib" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False

sys.addaudithook(hook)
codes = []
for words in json.loads(sys.argv[3]):
    if words == ["control"]:
        try:
            import socket
            socket.socket()
        except RuntimeError:
            codes.append(0)
        seen.clear()
        continue
    sys.argv = ["wheelslim", *words]
    from wheelslim.cli.app import main
    try:
        main()
        codes.append(0)
    except SystemExit as end:
        codes.append(end.code or 0)
with open(log, "w") as file:
    json.dump({"codes": codes, "seen": seen}, file)
"""
SOURCE = Path(__file__).parents[2] / "src"
LIBRARY = BY_NAME["many_archs"].path.read_bytes()


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """The file that exists once anything ran."""
    return tmp_path / "mark"


@pytest.fixture
def loud(mark: Path, tmp_path: Path) -> dict[str, Member | bytes]:
    """Files that leave the mark: imported, loaded, run, or put on the path."""
    line = f"import os; os.close(os.open({str(mark)!r}, os.O_CREAT | os.O_WRONLY))\n".encode()
    source, library = tmp_path / "loud.c", tmp_path / "loud.so"
    body = f'{{ open("{mark}", O_CREAT | O_WRONLY, 0600); }}'
    source.write_text(f"#include <fcntl.h>\n__attribute__((constructor)) static void run(void) {body}\n")
    must([program("gcc"), "-shared", "-fPIC", str(source), "-o", str(library)])
    script = b"#!/bin/sh\ntouch " + str(mark).encode() + b"\n"
    return {
        "loud/__init__.py": line,
        "loud/lib.so": Member(LIBRARY, 0o755),
        "loud/constructor.so": Member(library.read_bytes(), 0o755),
        "loud.pth": line,
        "sitecustomize.py": line,
        "usercustomize.py": line,
        "setup.py": line,
        "conftest.py": line,
        "loud/tool": Member(script, 0o755),
    }


def run(commands: list[list[str]], place: Path, tmp_path: Path) -> None:
    """Run commands in one child under the hook: all end with 0, and it sees nothing forbidden."""
    log, hook = tmp_path / "log.json", tmp_path / "hook.py"
    hook.write_text(HOOK)
    words = [sys.executable, str(hook), str(place), str(log), json.dumps(commands)]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(words, cwd=place, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    found = json.loads(log.read_text())
    assert found["seen"] == []
    assert not any(found["codes"]), done.stderr


def test_the_marks_work(loud: dict[str, Member | bytes], mark: Path, tmp_path: Path) -> None:
    for name in ("constructor.so", "tool", "__init__.py"):
        mark.unlink(missing_ok=True)
        one = loud[f"loud/{name}"]
        path = tmp_path / name
        path.write_bytes(one.data if isinstance(one, Member) else one)
        path.chmod(0o755)
        load = f"import ctypes; ctypes.CDLL({str(path)!r})"
        words = {"constructor.so": [sys.executable, "-c", load], "__init__.py": [sys.executable, str(path)]}
        must(words.get(name, [str(path)]))
        assert mark.exists(), name


def test_no_command_runs_anything(loud: dict[str, Member | bytes], mark: Path, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    wheel = str(Wheel(loud, name="loud").write(place))
    files = {name: one if isinstance(one, Member) else Member(one) for name, one in loud.items()}
    items = [Item(f"lib/{name}", one.data, mode=one.mode) for name, one in files.items()]
    script = Item("bin/.loud-post-link.sh", files["loud/tool"].data, mode=0o755)
    conda = str(CondaPackage([*items, script], name="loud", level=1).write(place))
    site = environment(place / "env")
    for name, one in files.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_bytes(one.data)
    (place / "sitecustomize.py").write_bytes(files["sitecustomize.py"].data)
    (place / "wheelslim.py").write_bytes(files["setup.py"].data)
    out = ["-q", "-a", "sm_90", "-o", "out"]
    run(
        [
            ["control"],
            ["inspect", wheel, "--html", "page.html"],
            ["inspect", conda, "--json"],
            ["prune", *out, "--strip=all", "--embedded", "--check-input", wheel, conda],
            ["prune", *out, "-f", "--recompress", "zstd", "--inference-only", "--html", "out.html", wheel],
            ["check", "-a", "sm_90", wheel],
            ["explain", "-a", "sm_90", wheel],
            ["verify", "-a", "sm_90", wheel, wheel],
            ["env", "-q", "-a", "sm_90", "env"],
        ],
        place,
        tmp_path,
    )
    assert not mark.exists()


def test_the_hook_sees_what_it_forbids(tmp_path: Path) -> None:
    """``native`` asks the driver, which is the one thing that is loaded, and only then."""
    library = tmp_path / "lib.so"
    library.write_bytes(LIBRARY)
    with pytest.raises(AssertionError, match=r"ctypes\.dlopen"):
        run([["check", "-a", "native", str(library)]], tmp_path, tmp_path)
