"""The recipes of ``examples/``: their shell steps run in a plain directory, on small wheels."""

from __future__ import annotations

import hashlib
import json
import os
import py_compile
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from builders.conda_tree import add_info
from builders.environment_trees import MANY, PLAIN, environment
from builders.installed import conda_faults, record_faults
from integration import recipe_steps
from integration.recipe_steps import EXAMPLES, Workplace
from judges import conda_client
from judges.programs import must, program

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

DOCKERFILES = sorted((EXAMPLES / "docker").glob("Dockerfile*"))
SCRIPTS = sorted(EXAMPLES.rglob("*.sh"))
WORKFLOW = EXAMPLES / "ci" / "wheelhouse.yml"


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return recipe_steps.workplace(tmp_path / "place")


def content(root: Path) -> dict[str, tuple[int, str]]:
    """Mode and hash of every file: what the hash of a Nix output is made of."""
    return {
        path.relative_to(root).as_posix(): (
            path.stat().st_mode,
            hashlib.sha256(path.read_bytes()).hexdigest(),
        )
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def scripts() -> Iterator[tuple[str, str]]:
    for path in SCRIPTS:
        yield str(path.relative_to(EXAMPLES)), path.read_text(encoding="utf-8")
    for path in DOCKERFILES:
        steps = [step for step in recipe_steps.dockerfile_steps(path) if step.word == "RUN"]
        assert steps
        for number, step in enumerate(steps):
            text = recipe_steps.without_flags(step.rest)
            yield f"{path.name}-{number}", f"#!/bin/sh\nGPU=a10g\n{text}\n"
    for number, block in enumerate(recipe_steps.workflow_steps(WORKFLOW)):
        yield f"{WORKFLOW.name}-{number}", f"#!/bin/bash\nGPU=a10g\n{block}\n"


@pytest.mark.parametrize(("name", "text"), list(scripts()), ids=[name for name, _ in scripts()])
def test_shellcheck_has_nothing_to_say(name: str, text: str, tmp_path: Path) -> None:
    script = tmp_path / "script.sh"
    # Quotes of a variable that a step is sure to have, or lacks, are no matter of the step itself.
    script.write_text(text, encoding="utf-8")
    must([program("shellcheck"), "--exclude=SC2034", str(script)])


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.name)
def test_the_steps_of_a_dockerfile_make_a_slim_environment(dockerfile: Path, place: Workplace) -> None:
    if dockerfile.suffix == ".uv":
        program("uv")
    place.build(dockerfile)
    venv = place.root / "opt/venv"
    (library,) = venv.rglob("libtorch_cuda.so")
    assert library.stat().st_size < len(MANY)
    (site,) = (venv / "lib").glob("python*/site-packages")
    assert record_faults(site) == []
    stamp = json.loads((site / "torch-2.14.1.dist-info/wheelslim.json").read_text())
    assert stamp["targets"] == ["sm_86"]
    tool_in_image = (site / "wheelslim-0.1.0.dist-info").exists()
    assert tool_in_image == (dockerfile.suffix == ".single")


def test_the_service_compiles(tmp_path: Path) -> None:
    py_compile.compile(str(EXAMPLES / "docker/service.py"), doraise=True, cfile=str(tmp_path / "service.pyc"))


def test_the_layer_has_no_device_code_and_the_same_bytes_each_time(place: Workplace) -> None:
    script = EXAMPLES / "lambda/build-layer.sh"
    for name in ("one.zip", "two.zip"):
        place.run(f'"{script}" {name}')
    one, two = (place.root / name for name in ("one.zip", "two.zip"))
    assert one.read_bytes() == two.read_bytes()
    with zipfile.ZipFile(one) as archive:
        names = archive.namelist()
        assert archive.testzip() is None
        assert all(name.startswith("python/") for name in names)
        assert archive.getinfo("python/xgboost/lib/libxgboost.so").file_size < len(PLAIN)
        assert "python/numpy/tests/test_core.py" not in names
        archive.extractall(place.root / "function")
    report = json.loads(place.run("wheelslim inspect --json function/python/xgboost/lib/libxgboost.so"))
    assert report
    assert record_faults(place.root / "function/python") == []


def test_a_layer_over_the_limit_is_refused(place: Workplace, tmp_path: Path) -> None:
    script = tmp_path / "lambda" / "build-layer.sh"
    shutil.copytree(EXAMPLES / "lambda", script.parent)
    script.write_text(script.read_text().replace("limit=$((250 * 1024 * 1024))", "limit=1000"))
    done = subprocess.run(["bash", str(script), "out.zip"], env=place.environment, cwd=place.root,
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 1
    assert "over the limit" in done.stderr
    assert not (place.root / "out.zip").exists()


HOOK = """
fixupOutputHooks=()
source "$hook"
for prefix in $outputs; do
    for function in "${fixupOutputHooks[@]}"; do "$function"; done
done
"""


def fix_up(place: Workplace, *outputs: Path, **values: str) -> str:
    """What stdenv's fixupPhase does with the hook."""
    words = {"outputs": " ".join(map(str, outputs)), "hook": str(EXAMPLES / "nix/wheelslim-hook.sh")}
    return place.run(HOOK, None, **words, **values)


def test_the_nix_hook_slims_every_output_and_is_deterministic(place: Workplace) -> None:
    one, two = place.root / "one", place.root / "two"
    for root in (one, two):
        site = environment(root)
        for path in site.rglob("*.so"):
            path.chmod(0o444)
    fix_up(place, one, two, wheelslimArch="sm_86")
    assert content(one) == content(two)
    assert (one / "lib/python3.11/site-packages/torch/lib/libmany.so").stat().st_size < len(MANY)


def test_the_nix_hook_keeps_quiet_where_it_is_not_wanted(place: Workplace) -> None:
    root = place.root / "out"
    environment(root)
    before = content(root)
    fix_up(place, root)
    fix_up(place, root, wheelslimArch="sm_86", dontWheelslim="1")
    assert content(root) == before
    fix_up(place, root, wheelslimArch="sm_70")  # Nothing supports it: no error of the derivation.
    assert content(root) == before
    with pytest.raises(AssertionError):
        fix_up(place, root, wheelslimArch="sm_70", wheelslimStrict="1")
    with pytest.raises(AssertionError):
        fix_up(place, root, wheelslimArch="nonsense")


def test_nix_reads_its_files() -> None:
    must([program("nix-instantiate"), "--parse", str(EXAMPLES / "nix/default.nix")])


CLIENT = """#!{python}
import os, shutil, sys
from pathlib import Path
sys.path[:0] = {paths!r}
from judges.conda_client import rattler_install
prefix = Path(sys.argv[sys.argv.index("--prefix") + 1])
made = rattler_install([Path({package!r})], ["demo"], prefix.parent / "client")
shutil.move(made, prefix)
os._exit(0)  # rattler's threads may outlive the interpreter, and then it crashes.
"""


@pytest.fixture
def conda_package(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    (tree / "lib").mkdir(parents=True)
    (tree / "lib/libmany.so.1").write_bytes(MANY)
    (tree / "lib/libmany.so").symlink_to("libmany.so.1")
    (tree / "lib/text").write_text("text")
    add_info(tree, "demo")
    return conda_client.cph_create(tree, tmp_path / "demo-1.0-h0_0.conda")


def test_a_conda_environment_is_slimmed_and_its_cache_is_not(place: Workplace, conda_package: Path) -> None:
    paths = [str(Path(__file__).parents[1]), *sys.path]
    client = place.root / "programs/client"
    client.write_text(CLIENT.format(python=sys.executable, paths=paths, package=str(conda_package)))
    client.chmod(0o755)
    prefix = place.root / "prefix"
    place.run(f'"{EXAMPLES}/conda/slim-environment.sh" "{prefix}" a10g', CONDA=str(client))
    assert (prefix / "lib/libmany.so.1").stat().st_size < len(MANY)
    assert conda_faults(prefix) == []
    cached = list((place.root / "client/cache").rglob("libmany.so.1"))
    assert [path.read_bytes() for path in cached] == [MANY]
    rattler = pytest.importorskip("rattler")
    (record,) = (prefix / "conda-meta").glob("demo-*.json")
    known = {
        str(path.relative_path): path for path in rattler.PrefixRecord.from_path(record).paths_data.paths
    }
    assert known["lib/libmany.so.1"].size_in_bytes == (prefix / "lib/libmany.so.1").stat().st_size


def test_a_channel_holds_slimmed_packages(place: Workplace, conda_package: Path) -> None:
    recipe_steps.program(place.root / "programs/index", 'test "$1" = fs && touch "$2/indexed"')
    channel = place.root / "channel"
    script = EXAMPLES / "conda/slim-channel.sh"
    place.run(f'"{script}" "{channel}" a10g "{conda_package}"', INDEX="index")
    assert (channel / "linux-64/demo-1.0-h0_0_slim.conda").exists()
    assert (channel / "indexed").exists()


def test_the_steps_of_the_workflow_run(place: Workplace) -> None:
    checkout = place.root / "checkout"
    checkout.mkdir()
    (checkout / "requirements.txt").write_text("torch==2.14.1\nnumpy\n")
    must([sys.executable, "-m", "venv", str(place.root / "python")])
    path = f"{place.root / 'python/bin'}{os.pathsep}{place.environment['PATH']}"
    blocks = recipe_steps.workflow_steps(WORKFLOW)
    assert len(blocks) == 3
    for block in blocks:
        place.run(block, cwd=checkout, GPU="a10g", PATH=path)
    (library,) = (checkout / "try").rglob("libtorch_cuda.so")
    assert library.stat().st_size < len(MANY)
