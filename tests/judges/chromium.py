"""Headless Chromium: does a page show without errors and without scrolling sideways?"""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from judges.programs import run

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_MEASURE = """
<script>
addEventListener("load", () => {
  const seen = (box) => { const r = box.getBoundingClientRect(); return r.width > 0 && r.height > 0; };
  const root = document.documentElement;
  const result = {
    width: innerWidth,
    overflow: Math.max(root.scrollWidth, document.body.scrollWidth) - root.clientWidth,
    boxes: [...document.querySelectorAll(".treemap .box")].filter(seen).length,
    treemap: document.querySelector(".treemap")?.getBoundingClientRect().height ?? 0,
    paper: getComputedStyle(document.body).backgroundColor,
    sorted: [],
  };
  const table = document.querySelector("table.sortable");
  if (table) {
    for (let i = 0; i < 2; i++) {
      table.tHead.rows[0].cells[1].click();
      result.sorted.push([...table.tBodies[0].rows].map((row) => Number(row.cells[1].dataset.value)));
    }
  }
  parent.postMessage(JSON.stringify(result), "*");
});
</script>
</body>"""
_FRAME = """<!doctype html>
<link rel="icon" href="data:,">
<script>
addEventListener("message", (event) => {
  const out = document.createElement("pre");
  out.id = "measured";
  out.textContent = event.data;
  document.body.append(out);
});
</script>
<iframe src="PAGE" width="WIDTH" height="900" style="border: 0"></iframe>
"""
"""A window cannot be as narrow as a phone; a frame can."""


@dataclass(frozen=True)
class Shown:
    """What the browser made of a page; sizes in CSS pixels."""

    width: int
    overflow: int
    boxes: int
    treemap: float
    paper: str
    sorted: tuple[tuple[int, ...], ...]
    console: tuple[str, ...]


@dataclass(frozen=True)
class Chromium:
    """An installed Chromium."""

    program: str

    def show(self, page: Path, width: int, scratch: Path, *options: str) -> Shown:
        """Open a copy of ``page`` at ``width`` and measure it."""
        copy = scratch / f"measured-{width}.html"
        text = page.read_text(encoding="utf-8")
        assert text.count("</body>") == 1
        copy.write_text(text.replace("</body>", _MEASURE), encoding="utf-8")
        frame = scratch / f"frame-{width}.html"
        frame.write_text(_FRAME.replace("PAGE", copy.name).replace("WIDTH", str(width)), encoding="utf-8")
        done = self._run(scratch, 1600, "--dump-dom", *options, frame.as_uri())
        measured = re.search(r'<pre id="measured">(.*?)</pre>', done.stdout, re.DOTALL)
        assert measured is not None, done.stderr
        values = json.loads(measured[1])
        values["sorted"] = tuple(tuple(row) for row in values["sorted"])
        console = tuple(line for line in done.stderr.splitlines() if "CONSOLE" in line)
        return Shown(**values, console=console)

    def screenshot(self, page: Path, width: int, height: int, target: Path, *options: str) -> None:
        """Write a picture of ``page``."""
        shot = ("--hide-scrollbars", f"--screenshot={target}", *options, page.as_uri())
        self._run(target.parent, width, *shot, height=height)

    def _run(
        self, scratch: Path, width: int, *words: str, height: int = 900
    ) -> subprocess.CompletedProcess[str]:
        quiet = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")
        window = (f"--user-data-dir={scratch / 'profile'}", f"--window-size={width},{height}")
        done = run([self.program, *quiet, "--enable-logging=stderr", *window, *words])
        assert done.returncode == 0, done.stderr
        return done


def find() -> Chromium:
    """Find one on the PATH, or skip the test."""
    for name in _NAMES:
        program = shutil.which(name)
        if program is not None:
            return Chromium(program)
    pytest.skip("no Chromium on the PATH (Debian: apt-get install chromium)")
