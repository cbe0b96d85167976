"""The machine and the tools that a figure was measured with, in one sentence."""

from __future__ import annotations

import datetime
import os
import platform
import re
from importlib import metadata
from pathlib import Path

_PACKAGES = ("isal", "zlib-ng", "wheel", "conda-package-handling")


def describe() -> str:
    """Processor, cores, memory, system, versions, load, date."""
    model = re.search(r"model name\s*: (.*)", _read("/proc/cpuinfo"))
    memory = re.search(r"MemTotal:\s*(\d+) kB", _read("/proc/meminfo"))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    words = [model[1] if model else platform.processor(), f"{cores} cores"]
    if memory:
        words.append(f"{int(memory[1]) / (1 << 20):.0f} GiB")
    versions = [f"Python {platform.python_version()}", *filter(None, map(_version, _PACKAGES))]
    load = f"load {os.getloadavg()[0]:.1f} at the end" if hasattr(os, "getloadavg") else ""
    date = datetime.datetime.now(tz=datetime.timezone.utc).date()
    system = f"{platform.system()} {platform.machine()}"
    return f"{', '.join(words)}; {system}, {', '.join(versions)}; {load}; {date}."


def _version(package: str) -> str | None:
    try:
        return f"{package} {metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return None


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
