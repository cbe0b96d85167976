"""CUDA libraries made by a real assembler and linker, for machines that nvcc does not compile for here.

A few lines of C do what nvcc's host stub does: wrappers in ``.nvFatBinSegment`` and a constructor that
registers them. The device code comes from the corpus.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

ONE_SEGMENT = ("-z", "noseparate-code")
"""Linker options that NVIDIA's libraries seem to be made with: everything read-only in one RX segment."""


@dataclass(frozen=True)
class LinkedLibrary:
    """A library to be linked. Indices count the ``containers``.

    ``executable`` makes ``.nv_fatbin`` itself an executable section. ``unreferenced`` containers have no
    wrapper; an exported function ``container_N`` returns ``in_code`` ones; ``linker`` are words for ld.
    """

    containers: tuple[bytes, ...]
    align: int = 8
    executable: bool = False
    unreferenced: frozenset[int] = frozenset()
    in_code: tuple[int, ...] = ()
    linker: tuple[str, ...] = ()

    def build(self, directory: Path, compiler: str, runtime: Path) -> Path:
        """Assemble and link into ``directory``; ``runtime`` is a libcudart to link against.

        Raises:
            CalledProcessError: the compiler refused.
        """
        directory.mkdir(exist_ok=True)
        for number, container in enumerate(self.containers):
            (directory / f"{number}.fatbin").write_bytes(container)
        (directory / "fatbins.s").write_text(self.assembly())
        (directory / "host.c").write_text(self.host_code())
        linker = [word for option in self.linker for word in ("-Xlinker", option)]
        command = [compiler, "-shared", "-O1", "-fPIC", *linker, "fatbins.s", "host.c", str(runtime)]
        subprocess.run([*command, "-o", "linked.so"], cwd=directory, check=True)
        return directory / "linked.so"

    def assembly(self) -> str:
        """The sections with the device code and the wrappers."""
        lines = [f'.section .nv_fatbin,"{"ax" if self.executable else "a"}",%progbits']
        for number in range(len(self.containers)):
            lines += [f".balign {self.align}", f".globl fatbin_{number}", f".hidden fatbin_{number}"]
            lines += [f"fatbin_{number}:", f'.incbin "{number}.fatbin"', ".balign 8"]
        lines += ['.section .nvFatBinSegment,"aw",%progbits', ".balign 8"]
        for number in self.wrapped():
            lines += [f".globl wrapper_{number}", f".hidden wrapper_{number}", f"wrapper_{number}:"]
            lines += [".long 0x466243b1, 1", f".quad fatbin_{number}, 0"]
        lines.append('.section .note.GNU-stack,"",%progbits')
        return "\n".join(lines) + "\n"

    def host_code(self) -> str:
        """The constructor and the exported functions."""
        lines = ["extern void **__cudaRegisterFatBinary(const void *);", "int answer(void) { return 42; }"]
        hidden = '__attribute__((visibility("hidden")))'
        for number in self.in_code:
            lines.append(f"extern const char fatbin_{number}[] {hidden};")
            lines.append(f"const char *container_{number}(void) {{ return fatbin_{number}; }}")
        lines += [f"extern const char wrapper_{number}[] {hidden};" for number in self.wrapped()]
        lines.append("__attribute__((constructor)) static void register_all(void) {")
        lines += [f"    __cudaRegisterFatBinary(wrapper_{number});" for number in self.wrapped()]
        return "\n".join([*lines, "}"]) + "\n"

    def wrapped(self) -> list[int]:
        """Numbers of the containers that have a wrapper."""
        return [number for number in range(len(self.containers)) if number not in self.unreferenced]
