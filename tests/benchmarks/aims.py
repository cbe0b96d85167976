"""The aims, each beside what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MIB = 1 << 20
_UNPACK_PACK = "wheel unpack + wheel pack"
_DEFAULT = "wheelslim prune, default"
_FAST = "wheelslim prune, fast"


@dataclass(frozen=True)
class Aim:
    """What was aimed at and what came, in words; ``met`` says which is better."""

    what: str
    aim: str
    found: str
    met: bool

    @property
    def row(self) -> tuple[str, str, str, str]:
        """A row of the table."""
        return self.what, self.aim, self.found, "yes" if self.met else "**no**"


def aims(data: Mapping[str, Any]) -> Iterator[Aim]:
    """Yield the aims of which everything was measured."""
    suites = {key: {way["name"]: way for way in suite["ways"]} for key, suite in data["suites"].items()}
    if "torch" in suites:
        yield from _torch(suites["torch"])
    for key in ("torch", "cublas", "cupy-cuda13x"):
        if key in suites:
            yield from _size(data["suites"][key]["title"], suites[key][_DEFAULT])
    yield from _memory(suites)
    for key in ("torch", "cublas", "cupy-cuda13x", "bytes"):
        if key in suites:
            yield _scratch(data["suites"][key])
    if len(suites.get("bytes", ())) > 1:
        yield _linear(list(suites["bytes"].values()))
    yield from _planning(suites.get("containers", {}))
    inspect = suites.get("inspect", {})
    if "cuobjdump -lelf" in inspect:
        yield _at_least(
            "inspect against `cuobjdump -lelf`", 40, inspect["cuobjdump -lelf"], inspect["wheelslim inspect"]
        )
    if "start" in suites:
        wall = suites["start"]["wheelslim --help"]["wall"]
        yield Aim("`wheelslim --help`", "< 150 ms", f"{wall * 1000:.0f} ms", wall < 0.15)


def _torch(ways: Mapping[str, Any]) -> Iterator[Aim]:
    if _UNPACK_PACK in ways:
        yield _at_least("torch, default, against unpack + pack", 18, ways[_UNPACK_PACK], ways[_DEFAULT])
        yield _at_least("torch, fast, against unpack + pack", 28, ways[_UNPACK_PACK], ways[_FAST])
    ratio = ways[_FAST]["wall"] / ways["cp + sha256sum"]["wall"]
    yield Aim("torch, fast, against `cp` + `sha256sum`", "≤ 2.5 times", f"{ratio:.2f} times", ratio <= 2.5)


def _at_least(what: str, aim: float, slow: Mapping[str, Any], quick: Mapping[str, Any]) -> Aim:
    ratio = slow["wall"] / quick["wall"]
    return Aim(what, f"≥ {aim} times faster", f"{ratio:.1f} times", ratio >= aim)


def _size(title: str, way: Mapping[str, Any]) -> Iterator[Aim]:
    if way.get("output at zlib level 6"):
        ratio = way["output"] / way["output at zlib level 6"]
        what = f"output at default against zlib level 6, {title}"
        yield Aim(what, "≤ 1.01 times", f"{ratio:.4f} times", ratio <= 1.01)


def _memory(suites: Mapping[str, Any]) -> Iterator[Aim]:
    peaks = {
        f"{key}: {name}": way["peak"]
        for key, ways in suites.items()
        for name, way in ways.items()
        if way["shown"].startswith("wheelslim")
    }
    if peaks:
        most = max(peaks, key=peaks.__getitem__)
        peak = peaks[most]
        found = f"{peak / MIB:,.0f} MiB ({most})"
        yield Aim("peak memory, any input up to 8 GiB", "≤ 250 MB", found, peak <= 250e6)


def _scratch(suite: Mapping[str, Any]) -> Aim:
    ways = [way for way in suite["ways"] if way["shown"].startswith("wheelslim")]
    most, largest = max(way["scratch"] for way in ways), suite["facts"]["largest library"]
    # Whole blocks of the file system.
    met = most <= largest + MIB
    return Aim(
        f"scratch disk, {suite['title']}", f"≤ {largest / MIB:,.0f} MiB, the largest library",
        f"{most / MIB:,.0f} MiB", met,
    )  # fmt: skip


def _linear(ways: list[Mapping[str, Any]]) -> Aim:
    per_unit = [way["wall"] / way["scale"] for way in ways]
    found = ", ".join(f"{one:.2f}" for one in per_unit)
    return Aim("growth with bytes", "linear", f"{found} s for each GiB", max(per_unit) <= 1.25 * per_unit[0])


def _planning(ways: Mapping[str, Any]) -> Iterator[Aim]:
    found = [way for name, way in ways.items() if name.startswith("100,000") and "--dry-run" in name]
    for way in found:
        wall = way["wall"]
        yield Aim("planning 100,000 containers", "≤ 3 s", f"{wall:.1f} s, start-up included", wall <= 3)
