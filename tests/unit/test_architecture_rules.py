"""The structure that CONTRIBUTING.md describes, read from the source."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "wheelslim"
MODULES = sorted(PACKAGE.rglob("*.py"))

# Arrows point down: a module imports from its own layer or from lower ones.
LAYERS = ["ground", "middle", "top", "cli"]
GROUND = {"errors", "source", "pieces", "rewriter", "architecture", "units"}
TOP = {"__init__", "pipeline", "wheelhouse"}
SEPARATE = {"archive", "elf", "fatbin"}
PURE = {"selection", "plan"}
VAGUE = {"utils", "util", "helpers", "helper", "common", "tools", "misc"}
LONGEST = 300

# Libraries with one place each.
ONLY_IN = {
    "typer": {"cli"},
    "tqdm": {"cli"},
    "rich": {"cli", "report"},
    "isal": {"archive"},
    "zlib_ng": {"archive"},
    "conda_package_handling": {"archive"},
    "conda_package_streaming": {"archive"},
    "zipfile": {"archive"},
    "tarfile": {"archive"},
}
IO = {"os", "io", "pathlib", "shutil", "tempfile", "subprocess", "mmap", "socket"}
NETWORK = {"socket", "ssl", "http", "urllib.request", "requests", "urllib3", "httpx", "ftplib"}
RUNS_CODE = {"pickle", "marshal", "runpy", "importlib", "imp", "shelve", "code"}


def layer(part: str) -> str:
    if part in {"cli", "__main__"}:
        return "cli"
    if part in TOP:
        return "top"
    return "ground" if part in GROUND else "middle"


def part_of(path: Path) -> str:
    """The part of the package that a file belongs to: ``elf``, ``plan``, ``__init__``."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(tree: ast.Module, path: Path) -> set[str]:
    """Names of everything imported anywhere in a file, relative ones made absolute.

    ``from a import b`` gives both ``a`` and ``a.b``, since b may be a module.
    """
    package = ["wheelslim", *path.relative_to(PACKAGE).parts[:-1]]
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            found.add(source)
            found |= {f"{source}.{alias.name}" for alias in node.names}
    return found


def parts_imported(path: Path) -> set[str]:
    """Parts of the package that a file imports from; its own root counts as ``__init__``."""
    names = imports(ast.parse(path.read_text(encoding="utf-8")), path)
    own = [name.split(".") for name in names if name.split(".")[0] == "wheelslim"]
    known = {part_of(module) for module in MODULES}
    return {name[1] if len(name) > 1 and name[1] in known else "__init__" for name in own if len(name) > 1}


def outside_imported(path: Path) -> set[str]:
    names = imports(ast.parse(path.read_text(encoding="utf-8")), path)
    return {name for name in names if name.split(".")[0] != "wheelslim"}


every_module = pytest.mark.parametrize(
    "path", MODULES, ids=[str(module.relative_to(PACKAGE)) for module in MODULES]
)


@every_module
def test_imports_point_down(path: Path) -> None:
    mine = layer(part_of(path))
    upward = {part for part in parts_imported(path) if LAYERS.index(layer(part)) > LAYERS.index(mine)}
    assert not upward


@every_module
def test_archive_elf_and_fatbin_do_not_know_one_another(path: Path) -> None:
    if part_of(path) in SEPARATE:
        assert not parts_imported(path) & (SEPARATE - {part_of(path)})


@every_module
def test_the_deciding_parts_do_no_input_or_output(path: Path) -> None:
    if part_of(path) in PURE:
        assert not outside_imported(path) & IO
        assert "open" not in calls(path)


@every_module
def test_libraries_stay_in_their_places(path: Path) -> None:
    outside = {name.split(".")[0] for name in outside_imported(path)}
    strays = {name for name in outside if part_of(path) not in ONLY_IN.get(name, {part_of(path)})}
    assert not strays


@every_module
def test_nothing_reaches_for_the_network_or_runs_code_of_an_artifact(path: Path) -> None:
    outside = outside_imported(path)
    assert not {name for name in outside for bad in NETWORK if name == bad or name.startswith(bad + ".")}
    assert not {name.split(".")[0] for name in outside} & RUNS_CODE
    assert not calls(path) & {"eval", "exec", "compile", "__import__"}


@every_module
def test_only_the_command_line_prints(path: Path) -> None:
    if part_of(path) != "cli":
        assert not calls(path) & {"print", "exit", "quit", "input"}
        assert "sys.exit" not in calls(path)


@every_module
def test_modules_are_short_and_have_a_noun_for_a_name(path: Path) -> None:
    assert not set(path.relative_to(PACKAGE).with_suffix("").parts) & VAGUE
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST


@every_module
def test_modules_say_what_they_are(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or path.stat().st_size == 0


def calls(path: Path) -> set[str]:
    """Plain and dotted names that a file calls: ``print``, ``sys.exit``."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}


def test_the_rules_see_what_they_forbid(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The checks above are worth nothing if reading the imports misses one."""
    inner = tmp_path / "elf" / "bad.py"
    inner.parent.mkdir()
    inner.write_text(
        "from ..fatbin import model\nfrom . import reader\nimport wheelslim.cli.app\n"
        "def f():\n    from wheelslim import plan\n    import socket as s\n    print(eval('1'))\n"
    )
    monkeypatch.setattr(f"{__name__}.PACKAGE", tmp_path)
    monkeypatch.setattr(
        f"{__name__}.MODULES",
        [inner, *(tmp_path / name for name in ("fatbin/model.py", "cli/app.py", "plan.py"))],
    )
    assert parts_imported(inner) == {"fatbin", "elf", "cli", "plan"}
    assert outside_imported(inner) == {"socket"}
    assert calls(inner) == {"print", "eval"}
