"""CUDA libraries in every layout that was seen, and some that were not, without nvcc or a linker.

What ``build`` returns can be loaded: it exports ``answer`` (returns 42), and its constructor calls
``__cudaRegisterFatBinary`` for each wrapper as nvcc's host stub does.
"""

from __future__ import annotations

import hashlib
import struct
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from builders import elf, fatbin
from builders.elf import Section, Segment
from builders.machine import X86_64, Machine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

HOST_BYTES = 96
"""Size of the recognisable host data in ``.rodata`` and ``.data``."""


@dataclass(frozen=True)
class Embedded:
    """Containers outside the fatbin sections.

    ``section`` is one of ``.rodata``, ``.cask_resource``, ``.data``, ``.lrodata``, ``.ldata``. ``gap`` is the
    size of the host bytes before each container and after the last. With ``pointers``, ``.data`` holds the
    start and end address of each, set by RELATIVE relocations.
    """

    section: str
    containers: tuple[bytes, ...]
    gap: int = 24
    pointers: bool = False

    def lay_out(self) -> tuple[bytes, tuple[int, ...]]:
        """Bytes of the section's part and the offset of each container."""
        data, offsets = b"", []
        for number, container in enumerate(self.containers):
            data += host_bytes(f"{self.section} {number}", self.gap)
            data = data.ljust(elf.round_up(len(data), 8), b"\0")
            offsets.append(len(data))
            data += container
        data += host_bytes(f"{self.section} end", self.gap)
        return data.ljust(elf.round_up(len(data), 8), b"\0"), tuple(offsets)


@dataclass(frozen=True)
class BuiltLibrary:
    """The file and the addresses of what is in it."""

    data: bytes
    layout: elf.Layout
    containers: tuple[int, ...]
    relocatable: tuple[int, ...]
    wrappers: tuple[int, ...]
    embedded: Mapping[str, tuple[int, ...]]

    def at(self, address: int, size: int) -> bytes:
        """Bytes at a virtual address, through the PT_LOADs of the file."""
        phoff, count = struct.unpack_from("<Q", self.data, 32)[0], struct.unpack_from("<H", self.data, 56)[0]
        for number in range(count):
            kind, _, offset, vaddr, _, filesz, _, _ = elf.PHDR.unpack_from(
                self.data, phoff + number * elf.PHDR.size
            )
            if kind == elf.PT_LOAD and vaddr <= address and address + size <= vaddr + filesz:
                return self.data[offset + address - vaddr :][:size]
        raise ValueError(hex(address))


@dataclass(frozen=True)
class CudaLibrary:
    """A library to be built. Indices count the ``containers``, which go to ``.nv_fatbin``.

    Args:
        containers: for ``.nv_fatbin``.
        relocatable: for ``__nv_relfatbin``; then the wrapper of container 0, the linked one, has version 2.
        machine: ``X86_64`` or ``AARCH64``.
        align: p_align of the PT_LOADs; the machine's page by default.
        one_segment: everything read-only lies in one RX segment.
        packed: segments share file pages, as ld.lld lays them out.
        relocations: ``rela`` or ``relr`` for the relative ones.
        in_place: the wrapper holds the address too, as with GNU ld; ld.lld leaves 0.
        hash_style: ``.gnu.hash``, ``.hash`` or both.
        note: ``.note.gnu.build-id`` right after the program headers.
        phdr: a PT_PHDR, first.
        headroom: free bytes after the program headers.
        moved_tables: section headers, note, hash and ``.dynstr`` in a last segment, as patchelf left them in
            PyTorch's wheels.
        container_align: distance to which containers are aligned.
        unreferenced: these have no wrapper.
        pointed: these have a second pointer, in ``.data``.
        inside: ``.data`` has a pointer to 16 bytes after the start of these.
        in_code: an exported function ``container_N`` returns the address of these.
        exports: number of further exported functions, ``answer_N``, as real libraries have many.
        embedded: containers outside ``.nv_fatbin``.
        tail: size of the host bytes after the fatbin sections in their segment.
        symbols: ``.symtab`` with the local symbols that nvcc leaves.
        section_headers: without, e_shoff is 0.
        needed: DT_NEEDED.
        register: the constructor calls ``__cudaRegisterFatBinary`` with each wrapper of ``.nv_fatbin``.
    """

    containers: tuple[bytes, ...]
    relocatable: tuple[bytes, ...] = ()
    machine: Machine = X86_64
    align: int = 0
    one_segment: bool = False
    packed: bool = False
    relocations: Literal["rela", "relr"] = "rela"
    in_place: bool = True
    hash_style: Literal["gnu", "sysv", "both"] = "gnu"
    note: bool = True
    phdr: bool = False
    headroom: int = 0
    moved_tables: bool = False
    container_align: int = 8
    unreferenced: frozenset[int] = frozenset()
    pointed: frozenset[int] = frozenset()
    inside: frozenset[int] = frozenset()
    in_code: tuple[int, ...] = ()
    exports: int = 8
    embedded: tuple[Embedded, ...] = ()
    tail: int = 64
    symbols: bool = True
    section_headers: bool = True
    needed: tuple[str, ...] = ("libcudart.so.13",)
    register: bool = True

    def build(self) -> BuiltLibrary:
        """Build it."""
        return _Build(self).run()


def host_bytes(what: str, size: int) -> bytes:
    """Recognisable bytes that belong to the host code and must never change."""
    return hashlib.shake_128(what.encode()).digest(size)


class _Build:
    """The parts of one library while they find their places."""

    def __init__(self, spec: CudaLibrary) -> None:
        self.spec = spec
        self.fatbin, self.offsets = fatbin.section(spec.containers, align=spec.container_align)
        self.relfatbin, self.relfatbin_offsets = fatbin.section(spec.relocatable, align=spec.container_align)
        self.wrapped = [number for number in range(len(spec.containers)) if number not in spec.unreferenced]
        self.embedded = {one.section: one.lay_out() for one in spec.embedded}
        self.undefined = ["__cudaRegisterFatBinary"] if spec.register else []
        self.answers = ["answer", *(f"answer_{number}" for number in range(spec.exports))]
        self.exports = [*self.answers, *(f"container_{number}" for number in spec.in_code)]
        self.dynstr, self.name_at = elf.strings([*self.undefined, *self.exports, *spec.needed])

    def run(self) -> BuiltLibrary:
        spec = self.spec
        page = 1 if spec.packed else min(spec.align or spec.machine.page, spec.machine.page)
        image = elf.Image(
            machine=spec.machine.number,
            segments=self.segments(),
            align=spec.align or spec.machine.page,
            page=page,
            headroom=spec.headroom,
            extra=self.program_headers(),
            unloaded=self.symbol_table() if spec.symbols else (),
            section_headers=spec.section_headers,
        )
        data, layout = image.build()
        where = layout.address
        return BuiltLibrary(
            data,
            layout,
            tuple(where[".nv_fatbin"] + offset for offset in self.offsets),
            tuple(where["__nv_relfatbin"] + offset for offset in self.relfatbin_offsets)
            if spec.relocatable
            else (),
            tuple(where[".nvFatBinSegment"] + 24 * number for number in range(self.wrapper_count())),
            {
                name: tuple(self.base(layout, name) + offset for offset in at)
                for name, (_, at) in self.embedded.items()
            },
        )

    def wrapper_count(self) -> int:
        return len(self.wrapped) + len(self.spec.relocatable)

    def base(self, layout: elf.Layout, name: str) -> int:
        """Address at which the embedded part of a section starts."""
        host = {".rodata": HOST_BYTES, ".data": self.data_head()}.get(name, 0)
        return layout.address[name] + host

    def segments(self) -> tuple[Segment, ...]:
        spec = self.spec
        tables, movable = self.tables()
        text = Section(
            ".text", len(self.text(_nowhere())), self.text, flags=elf.SHF_ALLOC | elf.SHF_EXECINSTR, align=16
        )
        head = tuple(tables if spec.moved_tables else [*movable, *tables])
        constant = self.read_only()
        if spec.one_segment:
            segments = [Segment(elf.PF_R | elf.PF_X, (*head, text, *constant))]
        else:
            segments = [
                Segment(elf.PF_R, head),
                Segment(elf.PF_R | elf.PF_X, (text,)),
                Segment(elf.PF_R, constant),
            ]
        segments.append(Segment(elf.PF_R | elf.PF_W, self.writable()))
        for name, flags in ((".lrodata", elf.PF_R), (".ldata", elf.PF_R | elf.PF_W)):
            if name in self.embedded:
                data, _ = self.embedded[name]
                write = elf.SHF_WRITE if flags & elf.PF_W else 0
                segments.append(
                    Segment(flags, (Section(name, len(data), data, flags=elf.SHF_ALLOC | write),))
                )
        if spec.moved_tables:
            headers = Section(elf.SECTION_HEADERS, 0)
            segments.append(Segment(elf.PF_R | elf.PF_W, (headers, *movable)))
        return tuple(segments)

    def tables(self) -> tuple[list[Section], list[Section]]:
        """What the loader reads; second, those tables that patchelf moves first."""
        spec = self.spec
        movable = []
        if spec.note:
            note = struct.pack("<III4s", 4, 20, 3, b"GNU\0") + host_bytes("build id", 20)
            movable.append(Section(".note.gnu.build-id", len(note), note, elf.SHT_NOTE, align=4))
        if spec.hash_style != "gnu":
            names = [*self.undefined, *self.exports]
            table = elf.sysv_hash_table(names)
            movable.append(Section(".hash", len(table), table, elf.SHT_HASH, entsize=4, link=".dynsym"))
        if spec.hash_style != "sysv":
            table = elf.gnu_hash_table(len(self.undefined), self.exports)
            movable.append(Section(".gnu.hash", len(table), table, elf.SHT_GNU_HASH, link=".dynsym"))
        movable.append(Section(".dynstr", len(self.dynstr), self.dynstr, elf.SHT_STRTAB, align=1))
        symbols = 1 + len(self.undefined) + len(self.exports)
        tables = [
            Section(".dynsym", 24 * symbols, self.dynsym, elf.SHT_DYNSYM, entsize=24, link=".dynstr", info=1),
            Section(
                ".rela.dyn",
                24 * len(self.rela_entries(_nowhere())),
                self.rela,
                elf.SHT_RELA,
                entsize=24,
                link=".dynsym",
            ),
        ]
        if spec.relocations == "relr":
            # The bitmaps can only get shorter than one word for each place.
            size = 8 * len(self.relative(_nowhere()))
            tables.append(Section(".relr.dyn", size, self.relr, elf.SHT_RELR, entsize=8))
        return tables, movable

    def read_only(self) -> tuple[Section, ...]:
        spec = self.spec
        embedded, _ = self.embedded.get(".rodata", (b"", ()))
        rodata = host_bytes(".rodata", HOST_BYTES) + embedded
        sections = [Section(".rodata", len(rodata), rodata, align=32)]
        if spec.relocatable:
            sections.append(
                Section("__nv_relfatbin", len(self.relfatbin), self.relfatbin, align=spec.container_align)
            )
        sections.append(Section(".nv_fatbin", len(self.fatbin), self.fatbin, align=spec.container_align))
        if ".cask_resource" in self.embedded:
            data, _ = self.embedded[".cask_resource"]
            sections.append(Section(".cask_resource", len(data), data))
        if spec.tail:
            sections.append(Section(".gcc_except_table", spec.tail, host_bytes("tail", spec.tail), align=4))
        return tuple(sections)

    def writable(self) -> tuple[Section, ...]:
        spec = self.spec
        flags = elf.SHF_ALLOC | elf.SHF_WRITE
        dynamic = len(self.dynamic_entries(_nowhere())) * 16
        embedded, _ = self.embedded.get(".data", (b"", ()))
        sections = [
            Section(".init_array", 8, self.init_array, elf.SHT_INIT_ARRAY, flags, entsize=8),
            Section(".dynamic", dynamic, self.dynamic, elf.SHT_DYNAMIC, flags, entsize=16, link=".dynstr"),
            Section(".got", 8, b"", flags=flags),
            Section(".data", self.data_head() + len(embedded), self.data, flags=flags, align=32),
            Section(".nvFatBinSegment", 24 * self.wrapper_count(), self.wrappers, flags=flags),
            Section(".bss", 8 * (len(spec.relocatable) + 1) + 64, b"", elf.SHT_NOBITS, flags, align=32),
        ]
        return tuple(sections if spec.register else sections[1:])

    def program_headers(self) -> tuple[tuple[int, int, str, int], ...]:
        headers = [(elf.PT_DYNAMIC, elf.PF_R | elf.PF_W, ".dynamic", 8)]
        if self.spec.note:
            headers.append((elf.PT_NOTE, elf.PF_R, ".note.gnu.build-id", 4))
        headers.append((elf.PT_GNU_STACK, elf.PF_R | elf.PF_W, "", 16))
        if self.spec.phdr:
            headers.append((elf.PT_PHDR, elf.PF_R, "", 8))
        return tuple(headers)

    # What fills the sections once the addresses are known.

    def functions(self, layout: elf.Layout) -> dict[str, tuple[int, bytes]]:
        """Address and code of each function; the constructor comes last."""
        machine = self.spec.machine
        makers: dict[str, Callable[[int], bytes]] = {
            name: lambda _: machine.answer() for name in self.answers
        }
        for number in self.spec.in_code:
            target = layout.address[".nv_fatbin"] + self.offsets[number]
            makers[f"container_{number}"] = partial(machine.address, target=target)
        makers["constructor"] = partial(self.constructor, layout)
        at, made = layout.address[".text"], {}
        for name, make in makers.items():
            made[name] = (at, make(at))
            at = elf.round_up(at + len(made[name][1]), 16)
        return made

    def constructor(self, layout: elf.Layout, at: int) -> bytes:
        """Register what nvcc's stub registers: not the wrappers of ``__nv_relfatbin``."""
        wrapper, array = layout.address[".nvFatBinSegment"], layout.address[".bss"]
        plain = [wrapper + 24 * number for number in range(len(self.wrapped))]
        linked = [wrapper + 24 * (len(plain) + number) for number in range(len(self.spec.relocatable))]
        copies = [(one + 8, array + 8 * number) for number, one in enumerate(linked)]
        return self.spec.machine.constructor(at, copies, plain, layout.address[".got"])

    def text(self, layout: elf.Layout) -> bytes:
        base, code = layout.address[".text"], b""
        for at, part in self.functions(layout).values():
            code = code.ljust(at - base, b"\0") + part
        return code

    def dynsym(self, layout: elf.Layout) -> bytes:
        table = bytes(24)
        for name in self.undefined:
            table += elf.SYM.pack(self.name_at[name], 0x12, 0, 0, 0, 0)
        functions = self.functions(layout)
        for name in self.exports:
            at, code = functions[name]
            table += elf.SYM.pack(self.name_at[name], 0x12, 0, layout.index[".text"], at, len(code))
        return table

    def pointers(self, layout: elf.Layout) -> list[int]:
        """Addresses to which ``.data`` holds pointers."""
        start = layout.address[".nv_fatbin"]
        found = [start + self.offsets[number] for number in sorted(self.spec.pointed)]
        found += [start + self.offsets[number] + 16 for number in sorted(self.spec.inside)]
        for one in self.spec.embedded:
            if one.pointers:
                _, offsets = self.embedded[one.section]
                for offset, container in zip(offsets, one.containers, strict=True):
                    at = self.base(layout, one.section) + offset
                    found += [at, at + len(container)]
        return found

    def data_head(self) -> int:
        """Size of what ``.data`` holds before embedded containers."""
        embedded = sum(2 * len(one.containers) for one in self.spec.embedded if one.pointers)
        return HOST_BYTES + 8 * (len(self.spec.pointed) + len(self.spec.inside) + embedded)

    def relative(self, layout: elf.Layout) -> list[tuple[int, int]]:
        """Places that the loader fills with an address, and the address."""
        where = layout.address
        found = []
        if self.spec.register:
            found.append((where[".init_array"], self.functions(layout)["constructor"][0]))
        for number, target in enumerate(self.pointers(layout)):
            found.append((where[".data"] + HOST_BYTES + 8 * number, target))
        targets = [where[".nv_fatbin"] + self.offsets[number] for number in self.wrapped]
        targets += [where["__nv_relfatbin"] + offset for offset in self.relfatbin_offsets]
        for number, target in enumerate(targets):
            found.append((where[".nvFatBinSegment"] + 24 * number + 8, target))
        if self.spec.relocatable:
            found.append((where[".nvFatBinSegment"] + 16, where[".bss"]))
        return sorted(found)

    def rela_entries(self, layout: elf.Layout) -> list[tuple[int, int, int]]:
        """Entries of ``.rela.dyn``: relative ones first, as DT_RELACOUNT asks."""
        machine, entries = self.spec.machine, []
        if self.spec.relocations == "rela":
            entries = [(at, machine.relative, addend) for at, addend in self.relative(layout)]
        if self.spec.register:
            entries.append((layout.address[".got"], 1 << 32 | machine.glob_dat, 0))
        return entries

    def rela(self, layout: elf.Layout) -> bytes:
        return b"".join(elf.RELA.pack(*entry) for entry in self.rela_entries(layout))

    def relr(self, layout: elf.Layout) -> bytes:
        words = elf.relr([at for at, _ in self.relative(layout)])
        nothing = struct.pack("<Q", 1)  # a bitmap without bits
        return words + nothing * ((layout.size[".relr.dyn"] - len(words)) // 8)

    def in_place(self, layout: elf.Layout) -> Mapping[int, int]:
        """What lies in the file where a relocation puts an address; 0 where nothing is said."""
        there = self.spec.relocations == "relr" or self.spec.in_place
        return defaultdict(int, self.relative(layout) if there else ())

    def init_array(self, layout: elf.Layout) -> bytes:
        return struct.pack("<Q", self.in_place(layout)[layout.address[".init_array"]])

    def data(self, layout: elf.Layout) -> bytes:
        values, base = self.in_place(layout), layout.address[".data"]
        pointers = [values[at] for at in range(base + HOST_BYTES, base + self.data_head(), 8)]
        embedded, _ = self.embedded.get(".data", (b"", ()))
        return host_bytes(".data", HOST_BYTES) + struct.pack(f"<{len(pointers)}Q", *pointers) + embedded

    def wrappers(self, layout: elf.Layout) -> bytes:
        values, base = self.in_place(layout), layout.address[".nvFatBinSegment"]
        data = b""
        for at in range(base, base + 24 * self.wrapper_count(), 24):
            version = 2 if self.spec.relocatable and at == base else 1
            data += fatbin.wrapper(values[at + 8], version=version, last=values[at + 16])
        return data

    def dynamic_entries(self, layout: elf.Layout) -> list[tuple[int, int]]:
        spec, where, size = self.spec, layout.address, layout.size
        entries = [(1, self.name_at[name]) for name in spec.needed]
        if spec.register:
            entries += [(25, where[".init_array"]), (27, 8)]
        if spec.hash_style != "gnu":
            entries.append((4, where[".hash"]))
        if spec.hash_style != "sysv":
            entries.append((0x6FFFFEF5, where[".gnu.hash"]))
        entries += [(5, where[".dynstr"]), (6, where[".dynsym"]), (10, len(self.dynstr)), (11, 24)]
        entries += [(7, where[".rela.dyn"]), (8, size[".rela.dyn"]), (9, 24)]
        if spec.relocations == "rela":
            entries.append((0x6FFFFFF9, len(self.relative(layout))))
        else:
            entries += [(36, where[".relr.dyn"]), (35, size[".relr.dyn"]), (37, 8)]
        return [*entries, (0, 0)]

    def dynamic(self, layout: elf.Layout) -> bytes:
        return b"".join(struct.pack("<QQ", *entry) for entry in self.dynamic_entries(layout))

    def symbol_table(self) -> tuple[Section, ...]:
        """``.symtab`` with the local symbol that nvcc's assembly leaves at each container."""
        count = 1 + len(self.offsets) + len(self.relfatbin_offsets)
        return (
            Section(".comment", 32, b"built by tests/builders\0", flags=0, align=1),
            Section(
                ".symtab", 24 * count, self.symtab, elf.SHT_SYMTAB, 0, entsize=24, link=".strtab", info=count
            ),
            Section(".strtab", 12, b"\0fatbinData\0", elf.SHT_STRTAB, 0, align=1),
        )

    def symtab(self, layout: elf.Layout) -> bytes:
        table = bytes(24)
        for name, offsets in ((".nv_fatbin", self.offsets), ("__nv_relfatbin", self.relfatbin_offsets)):
            for offset in offsets:
                table += elf.SYM.pack(1, 0, 0, layout.index[name], layout.address[name] + offset, 0)
        return table


def _nowhere() -> elf.Layout:
    """A layout in which everything lies at 0, to learn sizes from."""
    zero: dict[str, int] = defaultdict(int)
    return elf.Layout(zero, zero, zero, zero)
