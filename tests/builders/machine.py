"""The few machine instructions that a built library needs, for x86-64 and AArch64."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


class Machine(Protocol):
    """What a machine's code looks like. ``at`` is the address at which the bytes will lie."""

    @property
    def number(self) -> int:
        """e_machine."""
        ...

    @property
    def page(self) -> int:
        """The usual p_align."""
        ...

    @property
    def relative(self) -> int:
        """Number of the RELATIVE relocation."""
        ...

    @property
    def glob_dat(self) -> int:
        """Number of the GLOB_DAT relocation."""
        ...

    def answer(self) -> bytes:
        """Return 42."""
        ...

    def address(self, at: int, target: int) -> bytes:
        """Return the address ``target``."""
        ...

    def constructor(
        self, at: int, copies: Sequence[tuple[int, int]], wrappers: Sequence[int], pointer: int
    ) -> bytes:
        """Copy the 8 bytes of each (source, destination), then call ``*pointer`` with each wrapper."""
        ...


@dataclass(frozen=True)
class X86:
    """EM_X86_64; relocation numbers from the x86-64 psABI."""

    number: int = 62
    page: int = 0x1000
    relative: int = 8
    glob_dat: int = 6

    def answer(self) -> bytes:
        """Return 42: mov eax, 42; ret."""
        return b"\xb8\x2a\0\0\0\xc3"

    def address(self, at: int, target: int) -> bytes:
        """Return an address: lea rax, [rip+d]; ret."""
        return b"\x48\x8d\x05" + _displacement(at, 7, target) + b"\xc3"

    def constructor(
        self, at: int, copies: Sequence[tuple[int, int]], wrappers: Sequence[int], pointer: int
    ) -> bytes:
        """Use mov rax, [rip+d]; mov [rip+d], rax; lea rdi, [rip+d]; call [rip+d]."""
        code = b"\x48\x83\xec\x08"
        for source, destination in copies:
            code += b"\x48\x8b\x05" + _displacement(at + len(code), 7, source)
            code += b"\x48\x89\x05" + _displacement(at + len(code), 7, destination)
        for wrapper in wrappers:
            code += b"\x48\x8d\x3d" + _displacement(at + len(code), 7, wrapper)
            code += b"\xff\x15" + _displacement(at + len(code), 6, pointer)
        return code + b"\x48\x83\xc4\x08\xc3"


@dataclass(frozen=True)
class Arm64:
    """EM_AARCH64; relocation numbers from the AArch64 ELF ABI, instructions from the Arm ARM."""

    number: int = 183
    page: int = 0x10000
    relative: int = 1027
    glob_dat: int = 1025

    def answer(self) -> bytes:
        """Return 42: mov w0, #42; ret."""
        return struct.pack("<II", 0x52800540, 0xD65F03C0)

    def address(self, at: int, target: int) -> bytes:
        """Return an address: adrp x0; add x0; ret."""
        return self._load_address(at, target, 0) + struct.pack("<I", 0xD65F03C0)

    def constructor(
        self, at: int, copies: Sequence[tuple[int, int]], wrappers: Sequence[int], pointer: int
    ) -> bytes:
        """Use ldr and str through x1 and x2, blr through x16."""
        code = struct.pack("<I", 0xA9BF7BFD)  # stp x29, x30, [sp, #-16]!
        for source, destination in copies:
            code += self._load_address(at + len(code), source, 1)
            code += struct.pack("<I", 0xF9400021)  # ldr x1, [x1]
            code += self._load_address(at + len(code), destination, 2)
            code += struct.pack("<I", 0xF9000041)  # str x1, [x2]
        for wrapper in wrappers:
            code += self._load_address(at + len(code), wrapper, 0)
            code += self._load_address(at + len(code), pointer, 16)
            code += struct.pack("<II", 0xF9400210, 0xD63F0200)  # ldr x16, [x16]; blr x16
        return code + struct.pack("<II", 0xA8C17BFD, 0xD65F03C0)  # ldp x29, x30, [sp], #16; ret

    def _load_address(self, at: int, target: int, register: int) -> bytes:
        pages = (target >> 12) - (at >> 12)
        adrp = 0x90000000 | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5 | register
        add = 0x91000000 | (target & 0xFFF) << 10 | register << 5 | register
        return struct.pack("<II", adrp, add)


X86_64 = X86()
AARCH64 = Arm64()


def _displacement(at: int, length: int, target: int) -> bytes:
    return struct.pack("<i", target - at - length)
