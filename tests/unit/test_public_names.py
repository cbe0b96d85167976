"""The public names: all there, typed, loaded late, and not hidden by modules of the same name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import wheelslim
from corpus.recipes import BY_NAME

SOURCES = Path(wheelslim.__file__).parents[1]


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(SOURCES)!r})\n{code}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.strip()


@pytest.mark.parametrize("name", wheelslim.__all__)
def test_every_name_is_there_at_once(name: str) -> None:
    assert run(f"import wheelslim; print(wheelslim.{name} is not None)") == "True"


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        _ = wheelslim.absent
    assert set(dir(wheelslim)) == set(wheelslim.__all__)


def test_importing_loads_no_part() -> None:
    loaded = run(
        "import wheelslim; print(sorted(name for name in sys.modules if name.startswith('wheelslim')))"
    )
    assert loaded == "['wheelslim', 'wheelslim.errors', 'wheelslim.version']"


def test_functions_stay_functions_after_everything_is_imported() -> None:
    """An import of a module called wheelslim.verify would hide the function."""
    code = "import wheelslim.cli.app, wheelslim.pipeline, wheelslim.verification\n"
    names = ("check", "explain", "inspect", "prune", "verify")
    assert run(f"{code}print(all(callable(getattr(wheelslim, n)) for n in {names}))") == "True"


def test_pruning_and_verifying_from_python(tmp_path: Path) -> None:
    library = BY_NAME["many_containers"].path
    done: list[int] = []
    report = wheelslim.prune(library, "sm_86", output_dir=tmp_path, progress=done.append)
    assert report.output is not None
    assert Path(report.output).stat().st_size == report.installed_after < report.installed_before
    assert wheelslim.verify(library, report.output, "sm_86").holds
    assert wheelslim.check(report.output, "sm_86").covered
    assert not wheelslim.check(report.output, "sm_90").covered
    assert wheelslim.prune(library, wheelslim.parse_targets("sm_86"), dry_run=True).output is None


@pytest.mark.parametrize("words", [{"ptx": "some"}, {"strip": "everything"}, {"drop": "nothing-such"}])
def test_words_that_do_not_exist_are_usage_errors(words: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(wheelslim.errors.UsageError):
        wheelslim.prune(BY_NAME["plain"].path, "sm_86", output_dir=tmp_path, **words)  # type: ignore[arg-type]
