"""What ``wheelhouse`` prints."""

from __future__ import annotations

from pathlib import Path

from wheelslim.report.model import PruneReport
from wheelslim.wheelhouse.account import wheelhouse_text
from wheelslim.wheelhouse.story import WheelhouseReport

NAME = "nvidia_nccl_cu13-2.30.7-0_sm80_sm86-py3-none-manylinux_2_18_x86_64.whl"


def report() -> WheelhouseReport:
    slimmed = PruneReport(
        artifact="a.whl",
        output=NAME,
        targets=("sm_80", "sm_86"),
        size_before=206 << 20,
        size_after=32 << 20,
        installed_before=242 << 20,
        installed_after=67 << 20,
        libraries=(),
    )
    return WheelhouseReport(Path("house"), (), {NAME: slimmed}, kept=("b.whl",), removed=("c.whl",))


def test_a_pipe_gets_whole_names_and_counts_agree() -> None:
    lines = wheelhouse_text(report()).splitlines()
    assert lines[2].split() == [NAME, "206.0", "MiB", "32.0", "MiB", "84.5", "%"]
    assert "nothing to slim, kept unchanged: 1 wheel" in lines
    assert "no longer needed, removed: 1 wheel" in lines
    assert lines[-1].startswith(
        "pip install --require-hashes -r house/requirements.slim.txt --index-url file://"
    )


def test_the_table_fits_a_terminal() -> None:
    lines = wheelhouse_text(report(), 60).splitlines()
    table = lines[: lines.index("nothing to slim, kept unchanged: 1 wheel")]
    assert all(len(line) <= 60 for line in table)
    assert "84.5 %" in table[2]
