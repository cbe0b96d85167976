"""What the next tool in the chain makes of slimmed libraries and wheels: ``python -m reliability.chain``.

Every tool gets the slimmed file; the library has to load as before, with the same containers handed to the
CUDA runtime and the same cubins in it, and the wheel has to install file by file. Where a tool fails, it gets
the original, too: only harm that it does not do to the original counts. The record is ``chain.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpus.recipes import BY_NAME, RECIPES
from judges import cuobjdump
from judges.loader import Loader, Registered, read_log
from judges.programs import must, run
from reliability.chain_tools import LibraryTool, ToolError, library_tools, plain
from reliability.chain_wheels import WheelTool, attempt, wheel_tools

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judges.cuobjdump import Cuobjdump

HERE = Path(__file__).parent
RECORD = HERE / "chain.json"
CACHE = Path(os.environ.get("WHEELSLIM_TEST_CACHE", "~/.cache/wheelslim/wheels")).expanduser()
DEMO = HERE.parents[1] / "examples/demo"
OK, SAME, BAD = "ok", "same as the original", "bad"
KNOWN = (
    "(fatbinData): st_value out of bounds",
    "(): st_value out of bounds",  # labels in .symtab; nothing loads them
    "is executable but contains no executable sections",  # a part of a split segment keeps the flags of it
)
"""What eu-elflint finds in addition: of no consequence to a loader."""
WAYS = {
    "dlopen, LD_BIND_NOW=1": "load",
    "dlopen and dlclose, 1,000 times": "cycles",
    "fork after load": "fork",
}


@dataclass(frozen=True)
class Real:
    """A library of a wheel in the cache: the environment it loads in, and what is imported before it."""

    wheel: str
    library: str
    environment: str = ""
    first: tuple[str, ...] = ()
    target: str = "sm_86"


REAL = (
    Real("torchvision-*.whl", "torchvision/_C_stable.so", "torch", ("torch",)),
    Real("bitsandbytes-*.whl", "bitsandbytes/libbitsandbytes_cuda130.so", "torch", ("torch",)),
    Real("cupy_cuda13x-*.whl", "cupy/cuda/cub.cpython-311-x86_64-linux-gnu.so", "small"),
    Real("cupy_cuda13x-*.whl", "cupy/cuda/thrust.cpython-311-x86_64-linux-gnu.so", "small"),
    Real("nvidia_cublas-13*.whl", "nvidia/cu13/lib/libcublas.so.13", "torch", ("torch",), "sm_90"),
    Real("nvidia_nccl_cu13-*.whl", "nvidia/nccl/lib/libnccl.so.2", "torch", (), "sm_90"),
)
REAL_WHEELS = (
    "torchvision-*.whl",
    "bitsandbytes-*.whl",
    "cupy_cuda13x-*.whl",
    "nvidia_nccl_cu13-*x86_64.whl",
)


@dataclass(frozen=True)
class Case:
    """A library before and after, and how it is loaded."""

    name: str
    original: Path
    slimmed: Path
    python: str = sys.executable
    first: tuple[str, ...] = ()
    real: bool = False


@dataclass(frozen=True)
class Seen:
    """What a library is once loaded: containers that reached the runtime, and the cubins in the file."""

    registered: tuple[Registered, ...]
    cubins: tuple[tuple[str, str], ...]


@dataclass
class Row:
    """The count of one tool in one version."""

    label: str
    version: str
    part: str
    outcomes: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)


class Chain:
    """One run over all cases; ``rows`` is the record."""

    def __init__(self, loader: Loader, judge: Cuobjdump | None, scratch: Path) -> None:
        """``scratch`` is a directory for copies."""
        self.loader, self.judge, self.scratch = loader, judge, scratch
        self.rows: dict[tuple[str, str], Row] = {}
        self.part = "libraries"

    def count(self, label: str, version: str, outcome: str, note: str = "") -> None:
        """Add one outcome, and a note unless it is known already."""
        row = self.rows.setdefault((label, version), Row(label, version, self.part))
        row.outcomes[outcome] += 1
        if note and note not in row.notes:
            row.notes.append(note)
        if outcome == BAD:
            print(f"BAD {label} {version}: {note}", file=sys.stderr, flush=True)

    def load(self, case: Case, library: Path, way: str = "load") -> tuple[Registered, ...]:
        """Load in a process of its own.

        Raises:
            ToolError: it does not load, or dies.
        """
        log = self.scratch / "spy.log"
        log.unlink(missing_ok=True)
        environment = {"LD_BIND_NOW": "1", "WHEELSLIM_SPY_LOG": str(log), "PYTHONPATH": ""}
        if case.real:
            environment["LD_PRELOAD"] = str(self.loader.directory / "spy.so")
        else:
            environment["LD_LIBRARY_PATH"] = str(self.loader.directory)
        done = run(
            [case.python, str(HERE / "chain_load.py"), str(library), way, *case.first], env=environment
        )
        if done.returncode != 0:
            raise ToolError(plain(f"does not load ({way}): exit {done.returncode}: {done.stderr[-300:]}"))
        return tuple(
            Registered("", one.version, one.entries, one.prelinked)
            for one in (read_log(log) if way == "load" else ())
            if one.file == library.name
        )

    def see(self, case: Case, library: Path) -> Seen:
        """Load it and list its cubins."""
        cubins = self.judge.cubins(library) if self.judge is not None else Counter()
        return Seen(self.load(case, library), tuple(sorted(map(tuple, cubins.elements()))))  # type: ignore[arg-type]

    def changed(self, case: Case, tool: LibraryTool, library: Path, before: Seen) -> str:
        """What is wrong after a tool changed a copy of ``library``; nothing where all is as before."""
        assert tool.change is not None
        place = Path(tempfile.mkdtemp(dir=self.scratch))
        copy = place / case.original.name
        shutil.copyfile(library, copy)
        copy.chmod(0o755)
        try:
            made = tool.change(copy)
            after = self.see(case, made if tool.moves else made.rename(copy))
        except (ToolError, AssertionError) as error:
            return str(error)
        finally:
            shutil.rmtree(place)
        if after.registered != before.registered:
            return "other containers are registered"
        return "" if after.cubins == before.cubins else "other cubins are in the file"

    def library(self, case: Case, tools: list[LibraryTool]) -> None:
        """Put one library through all tools and ways of loading."""
        before, original = self.see(case, case.slimmed), self.see(case, case.original)
        for tool in tools:
            if tool.moves and case.real:
                continue
            if tool.look is not None:
                said, usual = (set(tool.look(p).splitlines()) for p in (case.slimmed, case.original))
                wrong = sorted(line for line in said - usual if not _known(line, said))
                outcome = BAD if wrong else OK
                note = "; ".join(wrong)[:300] if wrong else ""
            else:
                note = self.changed(case, tool, case.slimmed, before)
                same = note and self.changed(case, tool, case.original, original)
                outcome = OK if not note else SAME if same else BAD
            said_of = f"{case.name}: {note}" if outcome == BAD else note
            self.count(tool.label, tool.program.version, outcome, said_of)
        for label, way in WAYS.items():
            self.alive(case, label, way)

    def alive(self, case: Case, label: str, way: str) -> None:
        """Load the slimmed library in one of the ways, and the original where that fails."""
        try:
            self.load(case, case.slimmed, way)
        except ToolError as error:
            try:
                self.load(case, case.original, way)
            except ToolError:
                self.count(label, f"glibc {platform.libc_ver()[1]}", SAME, str(error))
            else:
                self.count(label, f"glibc {platform.libc_ver()[1]}", BAD, f"{case.name}: {error}")
        else:
            self.count(label, f"glibc {platform.libc_ver()[1]}", OK)

    def under_gdb(self, case: Case) -> None:
        """Load under gdb, which reads the headers again as it is told of the library."""
        if case.real or shutil.which("gdb") is None:
            return
        command = [str(self.loader.directory / "load"), str(case.slimmed), "answer"]
        done = run(
            ["gdb", "-batch", "-nx", "-ex", "set breakpoint pending on", "-ex", "break answer", "-ex", "run",
             "-ex", "info sharedlibrary", "-ex", "x/2i $pc", "-ex", "continue", "--args", *command],
            env={"LD_LIBRARY_PATH": str(self.loader.directory), "DEBUGINFOD_URLS": ""},
        )  # fmt: skip
        fine = (
            "answer 42" in done.stdout
            and "exited normally" in done.stdout
            and case.slimmed.name in done.stdout
        )
        version = must(["gdb", "--version"]).splitlines()[0].rpartition(" ")[2]
        self.count("gdb: break, run, continue", version, OK if fine else BAD, "" if fine else case.name)

    def wheel(self, name: str, original: Path, slimmed: Path, tools: list[WheelTool]) -> None:
        """Put one wheel through all tools."""
        for tool in tools:
            note = attempt(tool, slimmed)
            same = note and attempt(tool, original)
            outcome = OK if not note else SAME if same and same.split(":")[0] == note.split(":")[0] else BAD
            self.count(tool.label, tool.program.version, outcome, f"{name}: {note}" if note else "")


def _known(line: str, said: set[str]) -> bool:
    """Whether a line is one of those that docs/reliability.md explains, or the exit code that they cause."""
    exit_code = line == "exit 1" and any(word in other for word in KNOWN for other in said)
    return exit_code or any(word in line for word in KNOWN)


def slim(artifact: Path, target: str, out: Path) -> Path:
    """Prune with the command line; returns the result."""
    must(
        [sys.executable, "-m", "wheelslim", "prune", "-q", "-f", "-a", target, "-o", str(out), str(artifact)]
    )
    return next(path for path in out.iterdir() if path.is_file())


def corpus_cases(scratch: Path, *, quick: bool) -> Iterator[Case]:
    """The libraries of the corpus, slimmed for sm_90."""
    for recipe in RECIPES if not quick else RECIPES[:1]:
        yield Case(recipe.name, recipe.path, slim(recipe.path, "sm_90", scratch / recipe.name))


def real_cases(scratch: Path) -> Iterator[Case]:
    """Libraries of real wheels, those that are in the cache and whose environment is there."""
    for real in REAL:
        wheels, environment = sorted(CACHE.glob(real.wheel)), CACHE.parent / "envs" / real.environment
        if not wheels or not environment.exists():
            continue
        place = Path(tempfile.mkdtemp(dir=scratch))
        with zipfile.ZipFile(wheels[-1]) as archive:
            original = place / Path(real.library).name
            with archive.open(real.library) as stream, original.open("wb") as file:
                shutil.copyfileobj(stream, file)
        slimmed = slim(original, real.target, place / "slim")
        yield Case(real.library, original, slimmed, str(environment / "bin/python"), real.first, real=True)
        shutil.rmtree(place)


def wheel_cases(scratch: Path, *, quick: bool) -> Iterator[tuple[str, Path, Path]]:
    """The demo, and real wheels of the cache: name, original, slimmed."""
    wheels = list(DEMO.glob("*.whl"))
    if not quick:
        wheels += [path for pattern in REAL_WHEELS for path in sorted(CACHE.glob(pattern))[-1:]]
    for wheel in wheels:
        out = scratch / "wheels" / wheel.name
        yield wheel.name.partition("-")[0], wheel, slim(wheel, "sm_90", out)
        shutil.rmtree(out)


def main() -> int:
    """Run, print the table, and write the record; 1 where something went wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--venvs", type=Path, help="a directory of virtual environments with further versions"
    )
    parser.add_argument("--quick", action="store_true", help="one library and the demo only; no record")
    parser.add_argument("--no-real", action="store_true", help="the corpus and the demo only; no record")
    parser.add_argument(
        "--only", choices=("libraries", "wheels"), help="half of it; the record keeps the other"
    )
    options = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="wheelslim-chain-"))
    (scratch / "loader").mkdir()
    chain = Chain(Loader.make(platform.machine(), scratch / "loader"), cuobjdump.find(CACHE), scratch)
    names: dict[str, list[str]] = {"libraries": [], "wheels": []}
    try:
        if options.only != "wheels":
            tools = list(library_tools(options.venvs, chain.loader.directory))
            for case in corpus_cases(scratch, quick=options.quick):
                chain.library(case, tools)
                chain.under_gdb(case)
                names["libraries"].append(case.name)
            for case in real_cases(scratch) if not options.quick and not options.no_real else ():
                chain.library(case, tools)
                names["libraries"].append(case.name)
                print(case.name, file=sys.stderr, flush=True)
        if options.only != "libraries":
            chain.part = "wheels"
            takers = list(wheel_tools(options.venvs))
            for name, original, slimmed in wheel_cases(scratch, quick=options.quick or options.no_real):
                chain.wheel(name, original, slimmed, takers)
                names["wheels"].append(name)
                print(name, file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(scratch)
    rows = {
        part: [
            {"tool": row.label, "version": row.version, **dict(row.outcomes), "notes": row.notes}
            for row in chain.rows.values()
            if row.part == part
        ]
        for part in names
    }
    if not (options.quick or options.no_real):
        record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
        for part in ("libraries", "wheels"):
            if names[part]:
                record[part] = {"tried": names[part], "rows": rows[part]}
        RECORD.write_text(json.dumps(record, indent=1) + "\n")
    print(*(table(part) for part in rows.values() if part), sep="\n\n")
    return int(any(row.outcomes[BAD] for row in chain.rows.values()))


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as Markdown."""
    lines = ["| tool | version | passed | same harm to the original |", "|---|---|---:|---:|"]
    for row in rows:
        bad = f", **{row[BAD]} bad**" if row.get(BAD) else ""
        lines.append(f"| {row['tool']} | {row['version']} | {row.get(OK, 0)}{bad} | {row.get(SAME, '')} |")
    return "\n".join(lines)


def record_tables() -> str:
    """What the record says, as Markdown."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    parts = []
    for part in ("libraries", "wheels"):
        rows, tried = record[part]["rows"], record[part]["tried"]
        passed = sum(row.get(OK, 0) for row in rows)
        same = sum(row.get(SAME, 0) for row in rows)
        real = ", ".join(f"`{name}`" for name in tried if name not in BY_NAME)
        corpus = " and the corpus" if part == "libraries" else ""
        text = f"{len(tried)} {part} ({real}{corpus}), {len(rows)} tools: {passed} runs passed"
        text += f"; in {same} the tool refuses or harms the original as well."
        parts.append(f"{text}\n\n{table(rows)}")
    pythons = record["pythons"]
    lines = ["| Python | unit tests passed | skipped |", "|---|---:|---:|"]
    lines += [f"| {version} | {one['passed']} | {one['skipped']} |" for version, one in pythons.items()]
    return "\n\n".join([*parts, "\n".join(lines)])


if __name__ == "__main__":
    sys.exit(main())
