"""The tables of attacks in docs/reliability.md, made from the tables that the tests run.

``python -m reliability.attack_page --ask`` also asks pip, uv and py-rattler what they do with each archive,
and keeps their answers in ``attacks.json``.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import sys
import tempfile
import zipfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from builders.conda import write_conda
from integration.test_odd_libraries import LIES
from judges.loader import Loader
from judges.programs import must, run
from judges.strict_zip import strict_zip_faults
from reliability.archive_attacks import NAME, TAR_ATTACKS, ZIP_ATTACKS, conda_package
from reliability.chain import record_tables
from reliability.elf_attacks import CUT, ELF_ATTACKS, IN_PLACE, LEFT, REFUSED
from wheelslim.slim import Method

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
ANSWERS = HERE / "attacks.json"
PAGE = HERE.parents[1] / "docs/reliability.md"
_RATTLER = "import sys, rattler.package_streaming as r; r.extract(sys.argv[1], sys.argv[2])"


def pip(python: str) -> Callable[[Path, Path], list[str]]:
    """Words for installing into a directory with the pip of ``python``."""
    quiet = ["--quiet", "--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check"]
    return lambda wheel, target: [python, "-m", "pip", "install", *quiet, "--target", str(target), str(wheel)]


def uv(wheel: Path, target: Path) -> list[str]:
    """Those of uv."""
    quiet = ["--quiet", "--no-deps", "--no-index", "--offline", "--no-cache", "--python", sys.executable]
    program = str(Path(sys.executable).with_name("uv"))
    return [program, "pip", "install", *quiet, "--target", str(target), str(wheel)]


def rattler(package: Path, target: Path) -> list[str]:
    """Those of py-rattler, which conda-like tools unpack with."""
    return [sys.executable, "-c", _RATTLER, str(package), str(target)]


def ask(python: str) -> dict[str, object]:
    """Let the installers try every archive."""
    found: dict[str, dict[str, str]] = {"pip": {}, "uv": {}, "PyPI": {}, "rattler": {}}
    with tempfile.TemporaryDirectory() as folder:
        wheel, package = Path(folder, NAME), Path(folder, "a.conda")
        for attack in ZIP_ATTACKS:
            key = f"{attack.group}: {attack.name}"
            wheel.write_bytes(attack.build())
            found["pip"][key] = _answer(pip(python), wheel)
            found["uv"][key] = _answer(uv, wheel)
            found["PyPI"][key] = "; ".join(strict_zip_faults(wheel)[:1]) or "takes"
        for row in TAR_ATTACKS:
            write_conda(package, "a", *conda_package(row))
            found["rattler"][row.name] = _answer(rattler, package)
    pip_version = must([python, "-m", "pip", "--version"]).split()[1]
    uv_version = must([str(Path(sys.executable).with_name("uv")), "--version"]).split()[1]
    asked = "import importlib.metadata as m; print(m.version('py-rattler'))"
    versions = {"pip": pip_version, "uv": uv_version, "rattler": must([sys.executable, "-c", asked]).strip()}
    return {"versions": versions, **found, "loads": _loads()}


def _libraries() -> list[tuple[str, bytes, str]]:
    """Name, bytes and fate of every odd library."""
    fates = {Method.NONE: LEFT, Method.IN_PLACE: IN_PLACE, Method.CUT: CUT}
    rows = [(f"{one.group}: {one.name}", one.build(), one.becomes) for one in ELF_ATTACKS]
    return rows + [(f"headers: {lie.name}", lie.build(), fates[lie.method]) for lie in LIES]


def _loads() -> dict[str, str]:
    """Let glibc load every odd library before anything is done to it."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        loader = Loader.make(platform.machine(), Path(folder))
        for name, data, _ in _libraries():
            path = Path(folder, "odd.so")
            path.write_bytes(data)
            environment = {"LD_LIBRARY_PATH": folder}
            done = run([str(loader.directory / "load"), str(path), "answer"], env=environment)
            found[name] = "loads" if done.returncode == 0 and "42" in done.stdout else "does not load"
    return found


def _answer(command: Callable[[Path, Path], list[str]], archive: Path) -> str:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "target")
        done = run(command(archive, target), env={"PYTHONWARNINGS": "ignore"})
        if done.returncode == 0:
            return "takes" if archive.suffix != ".whl" else _installed(archive, target)
        lines = [
            line.strip(" \u00d7\u2570\u2500\u25b6\u251c\u2574\u2502|")
            for line in (done.stdout + done.stderr).splitlines()
            if line.strip()
        ]
        said = lines[-1] if lines else f"exit {done.returncode}"
        return re.sub(r"\S*/tmp\S*", "…", said).replace("|", "/")[:90]


def _installed(wheel: Path, target: Path) -> str:
    """Tell whether every file of a wheel that was taken lies in the target."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = [info.orig_filename for info in archive.infolist() if not info.is_dir()]
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return "takes"  # It reads more than Python does.
    for name in names:
        path = (target / name.partition("\0")[0]).resolve()
        inside = path.is_relative_to(target.resolve())
        if not inside and path.exists():
            return "writes outside"
        if not inside or not path.is_file():
            return "leaves it out"
    return "takes"


def tables(answers: dict[str, dict[str, str]]) -> str:
    """Both tables as Markdown."""
    versions = answers["versions"]
    lines = [
        f"| attack | rule | pip {versions['pip']} | uv {versions['uv']} | PyPI's rule | wheelslim |",
        "|---|---|---|---|---|---|",
    ]
    for attack in ZIP_ATTACKS:
        key = f"{attack.group}: {attack.name}"
        asked = [_short(answers[who].get(key, "?")) for who in ("pip", "uv", "PyPI")]
        ours = _ours(attack.refused, late=attack.late, other="library" not in attack.name)
        lines.append(f"| {key} | {attack.rule} | {' | '.join(asked)} | {ours} |")
    lines += ["", f"| in a conda package | rule | py-rattler {versions['rattler']} | wheelslim |"]
    lines.append("|---|---|---|---|")
    for row in TAR_ATTACKS:
        asked = [_short(answers["rattler"].get(row.name, "?"))]
        lines.append(f"| {row.name} | {row.rule} | {asked[0]} | {_ours(row.refused)} |")
    return "\n".join(lines)


_FATES = {
    REFUSED: "refuses it alone, carries it through in a package",
    LEFT: "leaves it alone",
    IN_PLACE: "prunes in place, moves nothing",
    CUT: "cuts it",
}


def elf_table(answers: dict[str, dict[str, str]]) -> str:
    """The table of odd libraries as Markdown."""
    lines = ["| oddity | the original | wheelslim |", "|---|---|---|"]
    for name, _, fate in _libraries():
        lines.append(f"| {name} | {answers['loads'].get(name, '?')} | {_FATES[fate]} |")
    return "\n".join(lines)


def counts() -> Counter[str]:
    """How many rows there are of each fate."""
    rows = [attack.refused for attack in ZIP_ATTACKS] + [attack.refused for attack in TAR_ATTACKS]
    found = Counter("carried" if refused is None else "refused" for refused in rows)
    return found + Counter(fate for _, _, fate in _libraries())


def _short(answer: str) -> str:
    return answer if answer in ("takes", "leaves it out", "writes outside", "?") else "refuses"


def _ours(refused: str | None, *, late: bool = False, other: bool = False) -> str:
    if refused is None:
        return "carries it through"
    return "refuses with `--check-input`, else leaves the bytes as they are" if late and other else "refuses"


def page(text: str) -> str:
    """The page with its tables made anew."""
    answers = json.loads(ANSWERS.read_text(encoding="utf-8"))
    text = _with(text, "archive attacks", tables(answers))
    text = _with(text, "odd libraries", elf_table(answers))
    return _with(text, "tools", record_tables())


def _with(page: str, name: str, text: str) -> str:
    """The page with what stands between the marks of ``name`` replaced."""
    start, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
    before, _, rest = page.partition(start)
    assert end in rest, f"docs/reliability.md has no {start}"
    return before + start + text + rest[rest.index(end) :]


def main() -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ask", action="store_true", help="ask the installers, too")
    parser.add_argument("--ask-loader", action="store_true", help="ask glibc alone")
    parser.add_argument("--pip", default=sys.executable, help="a Python with the pip to ask")
    options = parser.parse_args()
    if options.ask_loader:
        answers = json.loads(ANSWERS.read_text(encoding="utf-8")) | {"loads": _loads()}
        ANSWERS.write_text(json.dumps(answers, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if options.ask:
        ANSWERS.write_text(
            json.dumps(ask(options.pip), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(dict(counts()))


if __name__ == "__main__":
    main()
