"""The tables of docs/results.md from docs/results.json; the rest of the page is kept as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BEGIN = "<!-- begin: made by scripts/results.py -->"
END = "<!-- end: made by scripts/results.py -->"

COLUMNS = (
    "verify",
    "unzip",
    "wheel unpack",
    "pip",
    "uv",
    "readelf",
    "cuobjdump",
    "import",
    "same bytes again",
    "nothing left",
)
MIB = 1 << 20

INTRO = """# Results

Measured on real wheels from PyPI. The tables are made by one command, `make results`; each row says what was
seen in that run and nothing else. No GPU was at hand: see [What has not run](#what-has-not-run).
"""

JUDGES = """What each judge is asked stands in tests/real/verdicts.py.

- `verify`: our own `wheelslim verify`, run on the finished wheel; all the others are not ours.
- `pip`, `uv`: asked for the version with the original and the pruned wheel side by side, they install the
  pruned one.
- `wheel unpack`: every hash of RECORD is true.
- `readelf`: no complaint about a changed library that it does not have about the original; the sections of
  the host part hold the same bytes.
- `cuobjdump`: lists exactly the entries that the driver's rule keeps, in order. (Libraries of CUDA 12.1 by
  cuobjdump 12.4: the newer one calls some of the originals' cubins invalid.)
- `import`: the package in the place of the original, its host code at work, on a machine without a GPU. The
  AArch64 libraries: loaded under qemu-user, a function of each called.
- A dash: not asked.
"""


def render(data: Mapping[str, Any], page: str) -> str:
    """Return the page with the tables replaced, or a new page."""
    made = "\n".join([BEGIN, "", *_headline(data), *_sizes(data), *_verdicts(data), *_machine(data), END])
    if BEGIN not in page:
        return f"{page or INTRO}\n{made}\n"
    before, _, rest = page.partition(BEGIN)
    return before + made + rest.partition(END)[2]


def _headline(data: Mapping[str, Any]) -> list[str]:
    head = data.get("headline")
    if head is None:
        return []
    library = head["library"]
    both = head["unpack"] + head["pack"]
    return [
        "## The main case",
        "",
        f"`wheelslim prune --arch {head['arch']} {head['wheel']}`, verification included: the median of "
        f"{len(head['seconds'])} runs ({', '.join(f'{one:.2f}' for one in sorted(head['seconds']))} s), "
        "beside unpacking and packing the wheel with `wheel` in the same run.",
        "",
        *_table(
            ("", "seconds", "peak memory"),
            [
                ("`wheelslim prune`", f"{head['median']:.1f}", _mib(head["peak"])),
                ("`wheel unpack` + `wheel pack`", f"{both:.1f}", _mib(head["unpack_pack_peak"])),
            ],
        ),
        "",
        f"`{library['path']}`: {_mib(library['before'])} → {_mib(library['after'])} installed; "
        f"the wheel: {_mib(head['file']['before'])} → {_mib(head['file']['after'])}. "
        f"Measured {head['date']} on cores shared with other work (load average {head['load'][0]:.1f}).",
        "",
    ]


def _sizes(data: Mapping[str, Any]) -> list[str]:
    rows = []
    for key, row in data["rows"].items():
        file, installed = row["file"], row["installed"]
        rows.append(
            (
                _name(row),
                _targets(key),
                _mib(file["before"]),
                _mib(file["after"]),
                _saved(file),
                _mib(installed["before"]),
                _mib(installed["after"]),
                _saved(installed),
                f"{row['seconds']:.1f}",
                _mib(row["peak"]),
            )
        )
    titles = ("wheel", "for", "file", "after", "saved", "installed", "after", "saved", "seconds", "memory")
    return [
        "## Before and after",
        "",
        "Sizes and peak memory in MiB, wall seconds of one run of `wheelslim prune` with verification.",
        "",
        *_table(titles, [tuple(cell.replace(" MiB", "") for cell in row) for row in rows]),
        "",
    ]


def _verdicts(data: Mapping[str, Any]) -> list[str]:
    rows, remarks = [], []
    for key, row in data["rows"].items():
        cells = []
        for column in COLUMNS:
            said = row["judges"].get(column, "not asked")
            if said.startswith("not asked"):
                cells.append("-")
                continue
            cells.append("**failed**" if said.startswith("FAILED") else _short(column, said))
            if said.startswith("FAILED"):
                remarks.append(f"- {_name(row)} {_targets(key)}, {column}: {' '.join(said.split())[:300]}")
        rows.append((_name(row), _targets(key), *cells))
    return [
        "## What the judges said",
        "",
        JUDGES,
        *_table(("wheel", "for", *COLUMNS), rows),
        "",
        *remarks,
        *([""] if remarks else []),
    ]


def _short(column: str, said: str) -> str:
    return said.partition("\n")[0] if column in ("readelf", "cuobjdump") else "yes"


def _machine(data: Mapping[str, Any]) -> list[str]:
    words = data.get("machine", {})
    tools = ", ".join(f"{name} {words[name]}" for name in words if name not in ("machine", "system"))
    dates = sorted({row["date"] for row in data["rows"].values()})
    return [
        f"{words.get('machine', '')}; {words.get('system', '')}; {tools}. Measured {', '.join(dates)}.",
        "",
    ]


def _name(row: Mapping[str, Any]) -> str:
    name, version, *_, platform = row["wheel"].removesuffix(".whl").split("-")
    return f"{name} {version}" + (" (AArch64)" if platform.endswith("aarch64") else "")


def _targets(key: str) -> str:
    return key.split(" ")[1].replace(",", ", ")


def _mib(size: int) -> str:
    mib = size / MIB
    return f"{mib:,.0f} MiB" if mib >= 1000 else f"{mib:.1f} MiB"


def _saved(sizes: Mapping[str, int]) -> str:
    return f"{100 * (1 - sizes['after'] / sizes['before']):.0f} %"


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Markdown; columns of numbers are set to the right."""
    numeric = [all(row[i][:1].isdigit() or row[i] == "-" for row in rows) for i in range(len(titles))]
    return [
        f"| {' | '.join(titles)} |",
        f"|{'|'.join('---:' if right else '---' for right in numeric)}|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
