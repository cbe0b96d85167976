"""What runs after wheelslim, in short; ``python -m reliability.chain`` tries every tool on every library.

strip and patchelf are in ``test_library_cut.py``, pip and uv in ``test_wheel_install.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from integration.pruning import prune
from judges.strict_zip import strict_zip_faults
from reliability.chain import BAD, DEMO, OK, WAYS, Case, Chain, slim
from reliability.chain_tools import LibraryTool, library_tools

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from judges.loader import Loader


@pytest.fixture
def case(corpus: Callable[[str], Path], tmp_path: Path) -> Case:
    original = corpus("many_archs")
    return Case("many_archs", original, prune(original, tmp_path / original.name, "sm_90").path)


@pytest.fixture
def chain(loader: Loader, tmp_path: Path) -> Chain:
    (tmp_path / "scratch").mkdir()
    return Chain(loader, None, tmp_path / "scratch")


@pytest.mark.parametrize(("way", "name"), WAYS.items(), ids=WAYS.values())
def test_ways_of_loading(way: str, name: str, case: Case, chain: Chain) -> None:
    chain.alive(case, way, name)
    (row,) = chain.rows.values()
    assert row.outcomes == {OK: 1}, row.notes


@pytest.mark.parametrize("name", ["objcopy", "readelf", "eu-elflint", "ldd", "file", "nm"])
def test_tools(name: str, case: Case, chain: Chain, loader: Loader) -> None:
    tools = [tool for tool in library_tools(None, loader.directory) if tool.program.name == name]
    if not tools:
        pytest.skip(f"{name} is not installed")
    chain.library(case, tools)
    assert [row.notes for row in chain.rows.values() if row.outcomes[BAD]] == []


def test_harm_is_seen(case: Case, chain: Chain, corpus: Callable[[str], Path], loader: Loader) -> None:
    """A tool that puts another library in its place is caught."""
    tool = next(tool for tool in library_tools(None, loader.directory) if tool.change is not None)
    other = corpus("lz4")

    def change(library: Path) -> Path:
        library.write_bytes(other.read_bytes())
        return library

    chain.library(case, [LibraryTool("swap", tool.program, change)])
    assert chain.rows["swap", tool.program.version].outcomes[OK] == 0


def test_a_slimmed_wheel_reads_the_same_from_the_front(tmp_path: Path) -> None:
    (wheel,) = DEMO.glob("*.whl")
    slimmed = slim(wheel, "sm_90", tmp_path)
    assert strict_zip_faults(slimmed) == []
    broken = tmp_path / "broken.whl"
    broken.write_bytes(b"#!" + slimmed.read_bytes() + b"!")
    assert strict_zip_faults(broken) != []
