"""The dynamic loader, and a spy in the place of the CUDA runtime.

A small C program loads the library in a process of its own, natively or under qemu-user.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from judges.programs import must, program, run

if TYPE_CHECKING:
    from collections.abc import Iterable

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Entry:
    """An entry that reached the runtime; ``digest`` covers header and payload."""

    kind: int
    sm: int
    flags: int
    size: int
    digest: str


@dataclass(frozen=True)
class Registered:
    """One call of ``__cudaRegisterFatBinary``; ``prelinked`` are containers that version 2 brings along."""

    file: str
    version: int
    entries: tuple[Entry, ...]
    prelinked: tuple[tuple[Entry, ...], ...]


@dataclass(frozen=True)
class Loaded:
    """What happened: ``values`` are the functions' results as text."""

    values: dict[str, str]
    registered: tuple[Registered, ...]


class LoadError(AssertionError):
    """The library could not be loaded; holds what the loader said."""


@dataclass(frozen=True)
class Loader:
    """Loads libraries of one machine; build with ``Loader.make``."""

    directory: Path
    compiler: str
    runner: tuple[str, ...]

    @property
    def runtime(self) -> Path:
        """The stub in the place of the CUDA runtime."""
        return self.directory / "libcudart.so.13"

    @classmethod
    def make(cls, machine: str, directory: Path) -> Loader:
        """Compile the loader, the spy and the stub runtime into ``directory``; skips without a compiler."""
        if platform.system() != "Linux":
            pytest.skip("loading ELF libraries needs Linux")
        if platform.machine() == machine:
            compiler: str = "gcc"
            runner: tuple[str, ...] = ()
        else:
            compiler = f"{machine}-linux-gnu-gcc"
            runner = (program(f"qemu-{machine}-static"), "-L", f"/usr/{machine}-linux-gnu")
        gcc, options = program(compiler), ["-O1", "-fPIC"]
        versions = directory / "versions"
        versions.write_text("libcudart.so.13 { global: *; };\n")
        stub = ["-shared", "-DSTUB", "-Wl,-soname,libcudart.so.13", f"-Wl,--version-script={versions}"]
        spy = str(HERE / "spy.c")
        must([gcc, *options, *stub, spy, "-o", str(directory / "libcudart.so.13"), "-ldl"])
        must([gcc, *options, "-shared", spy, "-o", str(directory / "spy.so"), "-ldl"])
        must([gcc, *options, str(HERE / "load.c"), "-o", str(directory / "load"), "-ldl"])
        return cls(directory, gcc, runner)

    def load(self, library: Path, *functions: str) -> Loaded:
        """Load with the stub runtime and call functions: ``answer``, or ``container_1:16`` for bytes.

        Raises:
            LoadError: the loader refused, or the process died.
        """
        log = self.directory / "spy.log"
        log.unlink(missing_ok=True)
        environment = {"LD_LIBRARY_PATH": str(self.directory), "WHEELSLIM_SPY_LOG": str(log)}
        command = [*self.runner]
        if self.runner:
            command += [word for name, value in environment.items() for word in ("-E", f"{name}={value}")]
            environment = {}
        done = run(
            [*command, str(self.directory / "load"), str(library.resolve()), *functions], env=environment
        )
        if done.returncode != 0 or done.stderr:
            raise LoadError(f"{library}: exit {done.returncode}\n{done.stderr}")
        values = dict(line.split(" ", 1) for line in done.stdout.splitlines())
        return Loaded(values, read_log(log))

    def spied(self, command: list[str], log: Path) -> tuple[Registered, ...]:
        """Run a native command with the spy preloaded, over the real CUDA runtime; appends to ``log``."""
        preload = os.pathsep.join(
            filter(None, [str(self.directory / "spy.so"), os.environ.get("LD_PRELOAD", "")])
        )
        must(command, env={"LD_PRELOAD": preload, "WHEELSLIM_SPY_LOG": str(log)})
        return read_log(log)


def read_log(log: Path) -> tuple[Registered, ...]:
    """Read what the spy wrote, in order of registration."""
    return tuple(_registrations(log.read_text().splitlines() if log.exists() else ()))


def _registrations(lines: Iterable[str]) -> list[Registered]:
    calls: list[tuple[str, int, list[list[Entry]]]] = []
    for line in lines:
        word, *fields = line.split(" ")
        if word == "register":
            calls.append((" ".join(fields[:-2]), int(fields[-2]), [[]]))
        elif word == "prelinked":
            calls[-1][2].append([])
        elif word == "entry":
            kind, sm, flags, size, digest = fields
            calls[-1][2][-1].append(Entry(int(kind), int(sm), int(flags), int(size), digest))
        else:
            raise AssertionError(f"the spy saw a {line}")
    return [
        Registered(file, version, tuple(containers[0]), tuple(map(tuple, containers[1:])))
        for file, version, containers in calls
    ]
