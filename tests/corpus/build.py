"""Build this corpus again: ``PYTHONPATH=tests python -m corpus.build [NAME…]``.

Needs nvcc 13.0, GNU ld, gold, ld.lld and patchelf; see README.md for the versions that made the
committed files. The same tools give the same bytes. ``--check`` builds and compares without
writing; ``--concat-fatbinary`` names the ``fatbinary`` of CUDA 13.5, which alone can write
concatenated entries.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from corpus.recipes import HERE, MANY, PARTS, RECIPES, Recipe, Unit

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCES = HERE / "cuda"
HOST = ("-Xcompiler", "-fPIC,-fno-exceptions,-fno-threadsafe-statics")
SCRATCH = Path(tempfile.gettempdir()) / "wheelslim-corpus"


@contextmanager
def scratch() -> Iterator[Path]:
    """Give an empty directory of a fixed name: with -rdc, nvcc hashes its path into symbol names."""
    SCRATCH.mkdir()
    try:
        yield SCRATCH
    finally:
        shutil.rmtree(SCRATCH)


def run(command: list[str], directory: Path) -> None:
    """Run a build command; its output shows only when it fails."""
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


def gencode(codes: tuple[str, ...]) -> list[str]:
    """Turn ``sm_90a`` into the ``-gencode`` arguments of nvcc."""
    arguments = []
    for code in codes:
        number = code.split("_", 1)[1]
        arguments += ["-gencode", f"arch=compute_{number},code={code}"]
    return arguments


def nvcc(arguments: list[str], directory: Path, step: str) -> None:
    """Run nvcc with fixed names for its intermediate files, which end up in the symbol table."""
    kept = directory / f"keep-{step}"
    kept.mkdir()
    run(["nvcc", "--keep", "--keep-dir", kept.name, f"--frandom-seed={step}", *arguments], directory)


def compile_unit(unit: Unit, recipe: Recipe, directory: Path, number: int) -> str:
    """Compile one translation unit to an object file and return its name."""
    stem = f"{Path(unit.source).stem}_{number}"
    shutil.copy(SOURCES / unit.source, directory / f"{stem}.cu")
    defines = [f"-D{define}" for define in unit.defines]
    kind = "-dc" if unit.linked else "-c"
    files = [f"{stem}.cu", "-o", f"{stem}.o"]
    nvcc([kind, *HOST, *gencode(recipe.codes), *recipe.nvcc, *defines, *files], directory, stem)
    return f"{stem}.o"


def build_library(recipe: Recipe, directory: Path) -> Path:
    """Compile, link and patch one library; returns its path in ``directory``."""
    objects = [compile_unit(unit, recipe, directory, number) for number, unit in enumerate(recipe.units)]
    linker = [word for option in recipe.linker for word in ("-Xlinker", option)]
    target = f"{recipe.name}.so"
    codes = gencode(recipe.cubins or recipe.codes)
    files = ["-Xlinker", "--as-needed", *objects, "-o", target]
    nvcc(["-shared", "-cudart", "shared", *HOST, *codes, *recipe.nvcc, *linker, *files], directory, "link")
    for arguments in recipe.patchelf:
        run(["patchelf", *arguments, target], directory)
    return directory / target


def build_parts(directory: Path) -> list[Path]:
    """Build the device-only containers from which tests assemble bigger libraries."""
    built = []
    for stem, codes, flags in (
        ("add", MANY, ("-no-compress",)),
        ("scale", MANY, ("-Xfatbin", "-compress-all", "--compress-mode", "size")),
    ):
        shutil.copy(SOURCES / f"{stem}.cu", directory)
        nvcc(["-fatbin", *gencode(codes), *flags, f"{stem}.cu", "-o", f"{stem}.fatbin"], directory, stem)
        built.append(directory / f"{stem}.fatbin")
    return built


def build_concatenated(fatbinary: str, directory: Path) -> Iterator[Path]:
    """Build containers with concatenated entries (kind 0x100) beside ordinary ones."""
    shutil.copy(SOURCES / "add.cu", directory)
    for stem, options, codes in (
        ("concatenated", (), ("80", "86", "90", "120")),
        ("concatenated_suffixes", ("-ident", "add.cu"), ("80", "90", "90a", "100", "100a", "103f", "120")),
    ):
        images = []
        for code in codes:
            if not (directory / f"{code}.cubin").exists():
                nvcc(
                    ["-cubin", f"-arch=sm_{code}", "add.cu", "-o", f"{code}.cubin"], directory, f"cubin{code}"
                )
            images.append(f"--image3=kind=elf,sm={code},file={code}.cubin")
        run([fatbinary, "-64", f"--create={stem}.fatbin", "--concat", *options, *images], directory)
        yield directory / f"{stem}.fatbin"


def settle(built: Path, committed: Path, *, check: bool) -> bool:
    """Compare with the committed file, or replace it; returns whether all is well."""
    same = committed.exists() and committed.read_bytes() == built.read_bytes()
    if not check and not same:
        committed.parent.mkdir(exist_ok=True)
        shutil.copyfile(built, committed)
        committed.chmod(0o644)
    verdict = "same" if same else "differs" if check else "written"
    print(f"{committed.name:28} {built.stat().st_size:9,}  {verdict}")
    return same or not check


def main() -> int:
    """Build what was asked for, everything by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="libraries, or 'parts'; all by default")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("--concat-fatbinary", help="fatbinary of CUDA 13.5 or newer")
    options = parser.parse_args()
    release = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=True).stdout
    if not re.search(r"release 13\.0,", release):
        print("warning: the committed files were made by nvcc 13.0", file=sys.stderr)
    os.environ["SOURCE_DATE_EPOCH"] = "0"
    well = True
    for recipe in RECIPES:
        if not options.names or recipe.name in options.names:
            with scratch() as directory:
                well &= settle(build_library(recipe, directory), recipe.path, check=options.check)
    if not options.names or "parts" in options.names:
        with scratch() as directory:
            for built in build_parts(directory):
                well &= settle(built, PARTS / built.name, check=options.check)
    if options.concat_fatbinary:
        with scratch() as directory:
            for built in build_concatenated(options.concat_fatbinary, directory):
                well &= settle(built, PARTS / built.name, check=options.check)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
