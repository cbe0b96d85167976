"""Runs of the command line that faults are injected into, and what must hold of each afterwards."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from builders.conda import CondaPackage, Item
from builders.environment_trees import environment, temporaries
from builders.installed import conda_faults, conda_record, record_faults
from builders.wheel import Member, Wheel
from corpus.recipes import BY_NAME

LIBRARIES = {name: BY_NAME[name].path.read_bytes() for name in ("many_archs", "lz4", "plain")}
ARCH = "sm_86"


@dataclass(frozen=True)
class Hit:
    """How a run ended that was hit, and what may be.

    ``done``: with exit code 0; ``litters``: temporary files may stay; ``late``: its result may be whole
    nevertheless; ``changed``: the input was changed by somebody else.
    """

    done: bool
    litters: bool = False
    late: bool = False
    changed: bool = False


class Scenario(ABC):
    """A run over files below ``root``: made by ``prepare``, judged by ``judge``."""

    name: str
    one_file = True
    """Whether the input is one file."""

    @abstractmethod
    def prepare(self, root: Path) -> list[str]:
        """Make the input in the empty directory ``root``; returns the words of the command line."""

    @abstractmethod
    def result(self, root: Path) -> dict[str, str]:
        """What a run without faults leaves: names and hashes."""

    @abstractmethod
    def judge(self, root: Path, expected: dict[str, str], hit: Hit) -> str | None:
        """Say what is wrong after a run, or None."""

    def artifact(self, root: Path) -> Path | None:
        """The input, where it is one file."""
        del root
        return None

    def again(self, root: Path, words: list[str]) -> list[str]:
        """The words for a run after the fault; ``root`` is made ready for it."""
        del root
        return words


class PruneScenario(Scenario):
    """Prune one artifact; the output is whole or absent, the input untouched, nothing else left."""

    def __init__(self, name: str, options: tuple[str, ...] = ()) -> None:
        """``name`` is ``wheel``, ``conda``, ``tarbz2`` or ``library``."""
        self.name = "-".join([name, *(word.strip("-") for word in options)])
        self._kind = name
        self._options = options
        self._input: dict[str, str] = {}

    def prepare(self, root: Path) -> list[str]:
        (root / "in").mkdir()
        artifact = self._artifact(root / "in")
        words = ["prune", "-q", "-a", ARCH, "-o", str(root / "out"), "--scratch-dir", str(root / "scratch")]
        return [*words, "-j", "2", *self._options, str(artifact)]

    def _artifact(self, place: Path) -> Path:
        if self._kind == "wheel":
            files: dict[str, Member | bytes] = {
                "demo/__init__.py": b"x = 1\n",
                "demo/data.bin": Member(bytes(range(256)) * 400, stored=True),
                **{f"demo/lib{name}.so": Member(data, 0o755) for name, data in LIBRARIES.items()},
            }
            return Wheel(files, name="demo").write(place)
        if self._kind == "library":
            (place / "lib.so").write_bytes(LIBRARIES["many_archs"])
            return place / "lib.so"
        items = [Item(f"lib/lib{name}.so", data, mode=0o755) for name, data in LIBRARIES.items()]
        package = CondaPackage([*items, Item("lib/text.txt", b"hello" * 5000)], level=1)
        return package.write(place) if self._kind == "conda" else package.write(place, ".tar.bz2")

    def result(self, root: Path) -> dict[str, str]:
        return hashes(root / "out")

    def artifact(self, root: Path) -> Path | None:
        (artifact,) = (root / "in").iterdir()
        return artifact

    def judge(self, root: Path, expected: dict[str, str], hit: Hit) -> str | None:
        (artifact,) = (root / "in").iterdir()
        if not hit.changed and self._input.setdefault(artifact.name, digest(artifact)) != digest(artifact):
            return "the input was changed"
        if hit.changed and hit.done:
            return "the input was changed, and the run did not notice"
        found = hashes(root / "out") | hashes(root / "scratch")
        named = {name: value for name, value in found.items() if not name.startswith(".wheelslim-")}
        if hit.done and found != expected:
            return f"the run was done, but left {sorted(found)} or other bytes"
        if not hit.done and not hit.litters and found and not (hit.late and found == expected):
            return f"the run failed, but left {sorted(found)}"
        if named and named != expected:
            return f"the output is neither whole nor absent: {sorted(named)}"
        return None

    def again(self, root: Path, words: list[str]) -> list[str]:
        for path in (root / "out").glob("[!.]*"):
            path.unlink()  # It would refuse to replace the output of a run that was hit after its end.
        return words


class EnvironmentScenario(Scenario):
    """Slim an environment: each library is old or new, and the run after the fault finishes the books."""

    name = "env"
    one_file = False

    def __init__(self) -> None:
        """Remember what the libraries were."""
        self._before: dict[str, str] = {}

    def prepare(self, root: Path) -> list[str]:
        site = environment(root / "env")
        paths = [p.relative_to(root / "env").as_posix() for p in sorted(site.rglob("*")) if p.is_file()]
        conda_record(root / "env", "everything", paths)
        return ["env", "-q", "-a", ARCH, str(root / "env")]

    def result(self, root: Path) -> dict[str, str]:
        found = hashes(root / "env")
        for path in (root / "env/conda-meta").glob("*.json"):
            found[f"conda-meta/{path.name}"] = _in_order(path)
        return found

    def judge(self, root: Path, expected: dict[str, str], hit: Hit) -> str | None:
        assert not hit.changed, "tests of slim_tree change files under it"
        found = self.result(root)
        for name, value in found.items():
            if name.endswith((".so", ".so.13")) and value not in (expected[name], self._old(name)):
                return f"{name} is neither old nor new"
        missing = {name for name in expected if name.endswith((".so", ".so.13", ".py"))} - found.keys()
        if missing:
            return f"lost: {sorted(missing)}"
        if hit.done:
            if found != expected:
                other = {n for n in found.keys() | expected.keys() if found.get(n) != expected.get(n)}
                return f"the run was done, but {sorted(other)} differ"
            faults = record_faults(root / "env" / "lib/python3.11/site-packages") + conda_faults(root / "env")
            if faults:
                return f"the books are wrong: {faults}"
        if not hit.litters and not hit.done and any(path.name.endswith(".tmp") for path in temporaries(root)):
            return f"the run failed, but left {temporaries(root)}"
        return None

    def _old(self, name: str) -> str:
        if not self._before:
            with tempfile.TemporaryDirectory() as folder:
                environment(Path(folder))
                self._before.update(hashes(Path(folder)))
        return self._before[name]


SCENARIOS: dict[str, Scenario] = {
    one.name: one
    for one in (
        PruneScenario("wheel"),
        PruneScenario("wheel", ("--recompress", "zstd")),
        PruneScenario("conda"),
        PruneScenario("tarbz2"),
        PruneScenario("library"),
        EnvironmentScenario(),
    )
}


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def hashes(directory: Path) -> dict[str, str]:
    """Names below a directory, and hashes; nothing where there is none."""
    if not directory.exists():
        return {}
    return {
        path.relative_to(directory).as_posix(): digest(path)
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def _in_order(path: Path) -> str:
    """A conda record as text; what a run that was hit adds comes in another order."""
    record = json.loads(path.read_text(encoding="utf-8"))
    record["files"].sort()
    record["paths_data"]["paths"].sort(key=lambda entry: entry["_path"])
    return json.dumps(record, sort_keys=True)


def emptied(directory: Path) -> Path:
    """Make a directory anew."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    return directory
