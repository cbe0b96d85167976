"""Conda's own tools: py-rattler installs, cph (conda-package-handling) packs, unpacks and compares."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import zstandard

from judges.programs import must, program

if TYPE_CHECKING:
    from pathlib import Path


def channel_of(packages: list[Path], channel: Path) -> Path:
    """Make a local channel of ``packages``, indexed as ``rattler-index`` does it."""
    for package in packages:
        subdir = channel / _subdir(package)
        subdir.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(package, subdir / package.name)
    (channel / "noarch").mkdir(exist_ok=True)

    async def run() -> None:
        await importlib.import_module("rattler.index").index_fs(channel)

    _rattler()
    asyncio.run(run())
    return channel


def rattler_solve(channels: list[Path], spec: str) -> list[str]:
    """Names of the files that rattler chooses for ``spec``; earlier channels come first, strictly."""
    return [str(record.file_name) for record in asyncio.run(_solve(channels, [spec]))]


async def _solve(channels: list[Path], specs: list[str]) -> list[Any]:
    rattler = _rattler()
    sources = [rattler.Channel(channel.as_uri()) for channel in channels]
    return list(await rattler.solve(sources, specs, platforms=["linux-64", "noarch"]))


def rattler_install(packages: list[Path], specs: list[str], folder: Path) -> Path:
    """Install from a local channel made of ``packages`` into a fresh prefix; returns the prefix.

    Channel, cache and prefix lie under ``folder``. Dependencies have to be among the packages.
    """
    rattler = _rattler()
    channel = channel_of(packages, folder / "channel")
    prefix = folder / "prefix"

    async def run() -> None:
        records = await _solve([channel], specs)
        await rattler.install(records, prefix, cache_dir=folder / "cache", show_progress=False)

    asyncio.run(run())
    return prefix


def rattler_extract(package: Path, target: Path) -> Path:
    """Unpack with rattler."""
    _rattler()
    importlib.import_module("rattler.package_streaming").extract(package, target)
    return target


def _rattler() -> Any:  # noqa: ANN401 - a module without type information
    return pytest.importorskip("rattler")


def _subdir(package: Path) -> str:
    return str(_rattler().IndexJson.from_package_archive(package).subdir)


def cph(*arguments: str | Path) -> str:
    """Run ``cph`` and return what it said."""
    _need_cph()
    return must([sys.executable, "-W", "ignore", "-m", "conda_package_handling.cli", *map(str, arguments)])


def cph_extract(package: Path, target: Path) -> Path:
    """Unpack with ``cph extract``."""
    cph("extract", package, "--dest", target)
    return target


def cph_create(tree: Path, package: Path) -> Path:
    """Pack a directory with ``cph create``, files listed in order of their names."""
    listed = sorted(
        str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_symlink() or not path.is_dir()
    )
    file_list = package.with_name("files.txt")
    file_list.write_text("".join(f"{name}\n" for name in listed), encoding="utf-8")
    cph("create", tree, package, "--file-list", file_list)
    return package


def cph_differences(first: Path, second: Path) -> tuple[list[str], list[str]]:
    """Names that only one package has, and those that differ in any tar fact or byte, as cph judges."""
    _need_cph()
    validate = importlib.import_module("conda_package_handling.validate")
    _, missing, mismatched = validate.validate_converted_files_match_streaming(first, second, strict=True)
    return list(missing), list(mismatched)


def _need_cph() -> None:
    if importlib.util.find_spec("conda_package_handling") is None:
        pytest.skip("conda-package-handling is not installed")


def tar_extract(package: Path, target: Path) -> Path:
    """Unpack with unzip, zstd (the zstandard library) and tar."""
    tar = program("tar")
    target.mkdir()
    if package.name.endswith(".tar.bz2"):
        must([tar, "-xjf", str(package), "-C", str(target)])
        return target
    parts = target.with_name(f"{target.name}.parts")
    must([program("unzip"), "-q", str(package), "-d", str(parts)])
    for part in sorted(parts.glob("*.tar.zst")):
        with part.open("rb") as file:
            stream = zstandard.ZstdDecompressor().stream_reader(file)
            with subprocess.Popen([tar, "-xf", "-", "-C", str(target)], stdin=subprocess.PIPE) as process:
                assert process.stdin is not None
                shutil.copyfileobj(stream, process.stdin)
                process.stdin.close()
                assert process.wait() == 0
    return target
