"""The report of prune: what it sums up, its text at several widths, its JSON."""

from __future__ import annotations

import json
from dataclasses import replace

from judges.schemas import assert_valid
from wheelslim.account import (
    EmbeddedAccount,
    LibraryAccount,
    Method,
    SectionAccount,
    Share,
    TargetCoverage,
)
from wheelslim.report.json import prune_json
from wheelslim.report.model import LibraryReport, PruneReport
from wheelslim.report.page import Tone
from wheelslim.report.prune_page import prune_page
from wheelslim.report.text import render_prune_text
from wheelslim.selection import Coverage

MIB = 1 << 20
CUDA = LibraryReport(
    "torch/lib/a_directory_with_a_long_name/libtorch_cuda.so",
    LibraryAccount(
        size_before=480 * MIB,
        size_after=262 * MIB,
        method=Method.CUT,
        containers=475,
        before={"sm_80": Share(475, 90 * MIB), "sm_90a": Share(20, 30 * MIB), "compute_90": Share(5, MIB)},
        after={"sm_80": Share(475, 90 * MIB)},
        coverage=(
            TargetCoverage(
                "sm_86",
                {Coverage.COMPATIBLE: 470, Coverage.NONE: 5},
                {Coverage.COMPATIBLE: 468, Coverage.NONE: 7},
                2,
            ),
        ),
    ),
)
SMALL = LibraryReport(
    "torch/lib/libsmall.so",
    LibraryAccount(
        size_before=900,
        size_after=900,
        method=Method.NONE,
        containers=1,
        before={"sm_86": Share(1, 800)},
        after={"sm_86": Share(1, 800)},
        coverage=(TargetCoverage("sm_86", {Coverage.EXACT: 1}, {Coverage.EXACT: 1}, 0),),
        notes=("one container stays where it is",),
    ),
)
REPORT = PruneReport(
    artifact="torch.whl",
    output="slim/torch.whl",
    targets=("sm_86",),
    size_before=530 * MIB,
    size_after=300 * MIB,
    installed_before=2048 * MIB,
    installed_after=1830 * MIB,
    libraries=(SMALL, CUDA),
    dropped=tuple(f"torch/lib/static{number}.a" for number in range(12)),
    notices=("the signature RECORD.jws was dropped",),
)

TEXT = """\
torch.whl
→ slim/torch.whl
for sm_86

library                   before      after   saved  kept
──────────────────────────────────────────────────────────
…/libtorch_cuda.so     480.0 MiB  262.0 MiB  45.4 %  sm_80
torch/lib/libsmall.so      900 B      900 B       -  sm_86

installed               2.00 GiB   1.79 GiB  10.6 %
file                   530.0 MiB  300.0 MiB  43.4 %

target  exact  compatible  JIT  none  changed
─────────────────────────────────────────────
sm_86       1         468    -     7        2

note: the signature RECORD.jws was dropped
warning: a target no longer runs what it ran before in 2 containers; explain names each
note: the PTX of 1 library is gone: GPUs newer than your targets cannot run what is left (keep it with +PTX \
or --ptx all)
dropped 12 members:
  torch/lib/static0.a
  torch/lib/static1.a
  torch/lib/static2.a
  torch/lib/static3.a
  torch/lib/static4.a
  torch/lib/static5.a
  torch/lib/static6.a
  torch/lib/static7.a
  torch/lib/static8.a
  torch/lib/static9.a
  … and 2 more (-v lists them)
note: torch/lib/libsmall.so: one container stays where it is
"""


def test_the_whole_text() -> None:
    assert render_prune_text(REPORT, 60) == TEXT


def test_no_table_line_is_wider_than_the_console() -> None:
    tables = render_prune_text(REPORT, 70).split("note:")[0]
    assert max(len(line) for line in tables.splitlines()) <= 70


def test_a_pipe_gets_whole_paths_and_no_color() -> None:
    text = render_prune_text(REPORT, None)
    assert CUDA.path in text
    assert "\x1b" not in text


def test_a_terminal_gets_color() -> None:
    assert "\x1b[1m" in render_prune_text(REPORT, 80, color=True)


def test_verbose_names_every_library_target_and_dropped_member() -> None:
    text = render_prune_text(REPORT, None, verbose=True)
    rows = [line.split() for line in text.splitlines()]
    assert [CUDA.path, "sm_86", "-", "468", "-", "7", "2"] in rows
    assert [SMALL.path, "sm_86", "1", "-", "-", "-", "-"] in rows
    assert "  torch/lib/static11.a" in text


def test_a_dry_run_says_so_and_claims_no_file_size() -> None:
    dry = replace(REPORT, output=None, size_after=None)
    text = render_prune_text(dry, None)
    assert "nothing written" in text
    assert [line.split() for line in text.splitlines() if line.startswith("file")] == [
        ["file", "530.0", "MiB", "?", "?"]
    ]
    assert_valid(prune_json(dry))
    assert prune_json(dry)["size"] == {"before": 530 * MIB, "after": None}


def test_an_artifact_without_device_code_gets_no_tables() -> None:
    untouched = replace(
        REPORT,
        libraries=(),
        dropped=(),
        size_after=REPORT.size_before,
        installed_after=REPORT.installed_before,
    )
    text = render_prune_text(untouched, None)
    assert "No library holds device code." in text
    assert "target  exact" not in text
    assert "before" not in text


def test_what_went_is_summed_up_also_where_no_library_holds_device_code() -> None:
    loose = replace(REPORT, libraries=(), notices=("loose device code: 12 of 20 files go, 218.0 MiB",))
    text = render_prune_text(loose, 60)
    rows = [line.split() for line in text.splitlines()]
    assert ["installed", "2.00", "GiB", "1.79", "GiB", "10.6", "%"] in rows
    assert ["file", "530.0", "MiB", "300.0", "MiB", "43.4", "%"] in rows
    assert "No device code was found" not in text


def test_a_dry_run_that_would_drop_members_sums_up_too() -> None:
    dry = replace(REPORT, libraries=(), output=None, size_after=None, installed_after=REPORT.installed_before)
    assert ["file", "530.0", "MiB", "?", "?"] in [
        line.split() for line in render_prune_text(dry, 60).splitlines()
    ]


def test_json_holds_what_was_given() -> None:
    value = json.loads(json.dumps(prune_json(REPORT)))
    assert_valid(value)
    assert value["schema"] == "wheelslim/prune/1"
    cuda = next(item for item in value["libraries"] if item["path"] == CUDA.path)
    assert cuda["architectures"] == {
        "sm_80": {
            "entries": {"before": 475, "after": 475},
            "bytes": {"before": 90 * MIB, "after": 90 * MIB},
        },
        "sm_90a": {"entries": {"before": 20, "after": 0}, "bytes": {"before": 30 * MIB, "after": 0}},
        "compute_90": {"entries": {"before": 5, "after": 0}, "bytes": {"before": MIB, "after": 0}},
    }
    assert value["coverage"]["sm_86"] == {
        "before": {"exact": 1, "compatible": 470, "jit": 0, "none": 5},
        "after": {"exact": 1, "compatible": 468, "jit": 0, "none": 7},
        "changed": 2,
    }


def test_device_code_outside_the_usual_sections_counts_where_it_was_pruned() -> None:
    embedded = EmbeddedAccount(3, 1, {"sm_80": Share(2, 50), "sm_90": Share(1, 40)}, {"sm_90": Share(1, 40)})
    library = LibraryReport("lib.so", replace(SMALL.account, embedded=embedded))
    assert library.before == {"sm_80": Share(2, 50), "sm_86": Share(1, 800), "sm_90": Share(1, 40)}
    assert library.after == {"sm_86": Share(1, 800), "sm_90": Share(1, 40)}
    report = replace(REPORT, libraries=(library,))
    assert "sm_86 sm_90" in render_prune_text(report, None)
    value = prune_json(report)
    assert_valid(value)
    assert value["libraries"][0]["embedded"]["architectures"]["sm_80"]["bytes"] == {"before": 50, "after": 0}
    only = LibraryReport(
        "only.so", replace(SMALL.account, containers=0, before={}, after={}, embedded=embedded)
    )
    assert replace(REPORT, libraries=(only,)).with_device_code == (only,)


def test_what_was_stripped_is_told() -> None:
    stripped = LibraryReport("lib.so", replace(SMALL.account, stripped=3 * MIB))
    report = replace(REPORT, libraries=(stripped, stripped))
    assert "stripped 6.0 MiB of symbols and debug information" in render_prune_text(report, None)
    assert prune_json(report)["libraries"][0]["stripped"] == 3 * MIB


def test_the_page_divides_a_library_by_sections() -> None:
    sections = (
        SectionAccount(".nv_fatbin", {"sm_80": Share(1, 60), "sm_90": Share(1, 30)}, {"sm_80": Share(1, 60)}),
        SectionAccount("__nv_relfatbin", {"sm_80": Share(1, 10)}, {"sm_80": Share(1, 10)}),
    )
    account = replace(SMALL.account, size_before=200, sections=sections, stripped=25)
    (area, _) = prune_page(replace(REPORT, libraries=(LibraryReport("lib.so", account),))).areas[::-1]
    tree = {part.name: {(leaf.name, leaf.tone, leaf.size) for leaf in part.parts} for part in area.parts}
    assert tree == {
        ".nv_fatbin": {("sm_80", Tone.KEPT, 60), ("sm_90", Tone.DROPPED, 30)},
        "host code, symbols": set(),
        "stripped": set(),
        "__nv_relfatbin": {("sm_80", Tone.KEPT, 10)},
    }
    assert area.size == 200
