"""Installing a pruned wheel that lies beside its original: pip and uv have to take the pruned one.

A virtual environment gets it where the running Python matches the wheel's tags, else a bare directory with
the tags named on the command line (another Python's wheel, an AArch64 one).
"""

from __future__ import annotations

import sys
import venv
from typing import TYPE_CHECKING

from packaging.tags import sys_tags
from packaging.utils import parse_wheel_filename

from judges.programs import must, program

if TYPE_CHECKING:
    from pathlib import Path

    from packaging.tags import Tag

    from real.pruned import Pruned

QUIET = ("--quiet", "--no-deps", "--no-index")


def shop(pruned: Pruned) -> Path:
    """A directory with both wheels, for ``--find-links``."""
    directory = pruned.scratch / "links"
    if not directory.exists():
        directory.mkdir()
        for wheel in (pruned.original, pruned.wheel):
            (directory / wheel.name).symlink_to(wheel)
    return directory


def requirement(pruned: Pruned) -> str:
    """A pin on the version, as people write it."""
    name, version, _, _ = parse_wheel_filename(pruned.original.name)
    return f"{name}=={version}"


def pip(pruned: Pruned) -> Path:
    """Let pip choose from both wheels and install; returns the site-packages directory."""
    target = pruned.scratch / "pip"
    fits = installable(pruned)
    command = [sys.executable, "-m", "pip", "--isolated"]
    command += ["--python", str(_environment(target))] if fits else []
    command += ["install", *QUIET, "--no-compile", "--disable-pip-version-check"]
    if not fits:
        tag = _tag(pruned)
        command += [f"--target={target}", "--only-binary=:all:", f"--platform={tag.platform}"]
        command += [f"--python-version={tag.interpreter[2:]}"] if tag.interpreter[2:] != "3" else []
    must([*command, "--find-links", str(shop(pruned)), requirement(pruned)])
    return _site_packages(target) if fits else target


def uv(pruned: Pruned) -> Path:
    """Do the same with uv."""
    target = pruned.scratch / "uv"
    fits = installable(pruned)
    command = [program("uv"), "pip", "install", *QUIET, "--no-config", "--no-cache"]
    if fits:
        command += ["--python", str(_environment(target))]
    else:
        tag = _tag(pruned)
        machine = "aarch64" if tag.platform.endswith("aarch64") else "x86_64"
        command += [
            f"--target={target}",
            "--only-binary=:all:",
            f"--python-platform={machine}-manylinux_2_28",
        ]
        command += (
            [f"--python-version={tag.interpreter[2]}.{tag.interpreter[3:]}"] if tag.abi != "none" else []
        )
    must([*command, "--find-links", str(shop(pruned)), requirement(pruned)])
    return _site_packages(target) if fits else target


def installable(pruned: Pruned) -> bool:
    """Whether the running Python may install it."""
    return bool(_tags(pruned) & set(sys_tags()))


def _tags(pruned: Pruned) -> frozenset[Tag]:
    return parse_wheel_filename(pruned.wheel.name)[3]


def _tag(pruned: Pruned) -> Tag:
    return sorted(_tags(pruned), key=str)[0]


def _environment(target: Path) -> Path:
    """An empty virtual environment; returns its Python."""
    venv.create(target, symlinks=True)
    return target / "bin" / "python"


def _site_packages(target: Path) -> Path:
    return next((target / "lib").glob("python*/site-packages"))
