"""The names of the kernels in device code, as the compiler mangled them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from wheelslim.elf.layout import EHDR, ELF_MAGIC, ELFCLASS64, SHDR, SYM, Machine, SectionType
from wheelslim.errors import ElfFormatError, FatbinFormatError, Place
from wheelslim.fatbin.layout import EntryKind
from wheelslim.fatbin.payload import read_payload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelslim.fatbin.model import Entry
    from wheelslim.source import Source

_STT_FUNC = 2
_STO_CUDA_ENTRY = 0x10
"""In st_other of a kernel, not of a device function (measured, ABI versions 7 and 8; named by cuda-gdb)."""

_PARAMETERS = ".nv.constant0."
"""Prefix of the section with a kernel's parameters; device functions have none (measured)."""

_TEXT = ".text."
_LONGEST_NAME = 1 << 16
_LARGEST_IMAGE = 1 << 28
"""Bytes of the largest cubin that is read; larger ones count as not listed. NCCL has one of 55 MB."""

_MOST_NAMES = 1 << 26
"""Bytes of all names of one cubin; 23,708 kernels of PyTorch have 5.8 MB, in 475 cubins (measured)."""


class _Section:
    """The fields of a section header that matter here."""

    __slots__ = ("kind", "link", "name", "offset", "size")

    def __init__(self, fields: tuple[int, ...], name: str = "") -> None:
        self.kind, self.offset, self.size, self.link, self.name = (
            fields[1],
            fields[4],
            fields[5],
            fields[6],
            name,
        )


_PTX_ENTRY = re.compile(rb"\.entry\s+([A-Za-z_$%][\w$]*)", re.ASCII)


def cubin_kernels(image: bytes) -> tuple[str, ...]:
    """Return the names of the kernels in a cubin, each once, in the order of its symbol table.

    Kernels are the function symbols that are marked as entry points; names that only a section of
    kernel parameters has are added, so that no kernel is overlooked.

    Raises:
        ElfFormatError: no well-formed cubin, or one whose kernels cannot be listed.
    """
    sections = _sections(image)
    found: dict[str, None] = {}
    for section in sections:
        if section.kind == SectionType.SYMTAB:
            if not section.link < len(sections) or sections[section.link].kind != SectionType.STRTAB:
                raise _fault("the symbol table of a cubin has no strings", section.offset)
            found.update(dict.fromkeys(_entry_points(image, section, sections[section.link])))
    has_symbols = any(section.kind == SectionType.SYMTAB for section in sections)
    if not has_symbols and any(section.name.startswith(_TEXT) for section in sections):
        raise _fault("a cubin with code and without a symbol table", 0)
    for section in sections:
        if section.name.startswith(_PARAMETERS):
            found[section.name[len(_PARAMETERS) :]] = None
    return tuple(found)


def _entry_points(image: bytes, table: _Section, strings: _Section) -> Iterator[str]:
    spent = 0
    end = table.offset + table.size // SYM.size * SYM.size
    for name_at, info, other, _, _, _ in SYM.iter_unpack(memoryview(image)[table.offset : end]):
        if info & 0xF == _STT_FUNC and other & _STO_CUDA_ENTRY:
            name = _string(image, strings, name_at)
            spent += len(name)
            if spent > _MOST_NAMES:
                raise _fault("the names of a cubin take too much room", table.offset)
            yield name


def ptx_kernels(text: bytes) -> tuple[str, ...]:
    """Return the names of the kernels (``.entry``) in PTX, each once, in their order."""
    return tuple(dict.fromkeys(name.decode("ascii") for name in _PTX_ENTRY.findall(text)))


def entry_kernels(source: Source, entry: Entry, number: int) -> tuple[str, ...]:
    """Return the names of the kernels in ``entry``, whose offsets count from the start of ``source``.

    ``number`` is the SM number that a device chose; of a concatenated entry only cubins of that
    number count.

    Raises:
        FatbinFormatError: the payload cannot be read, or is of a kind without names.
        ElfFormatError: a cubin that is none, or whose kernels cannot be listed.
    """
    place = Place(offset=entry.offset)
    if entry.kind not in (EntryKind.CUBIN, EntryKind.CUBIN_VARIANT, EntryKind.PTX, EntryKind.CONCATENATED):
        raise FatbinFormatError("device code of a kind without names", place=place, found=entry.label)
    payload = read_payload(source, entry, _LARGEST_IMAGE)
    if entry.kind == EntryKind.PTX:
        return ptx_kernels(payload)
    if entry.kind != EntryKind.CONCATENATED:
        return cubin_kernels(payload)
    found: dict[str, None] = {}
    for sub in entry.subs:
        if sub.sm == number:
            found.update(dict.fromkeys(cubin_kernels(payload[sub.offset : sub.offset + sub.size])))
    return tuple(found)


def _sections(image: bytes) -> list[_Section]:
    """Read the section headers; only where symbols and strings lie is held against the image's end."""
    if len(image) < EHDR.size or image[:4] != ELF_MAGIC or image[4] != ELFCLASS64:
        raise _fault("no ELF64 file where a cubin should be", 0)
    header = EHDR.unpack_from(image)
    machine, table, entry_size, count, names_index = header[2], header[6], header[11], header[12], header[13]
    if machine != Machine.CUDA:
        raise _fault("an ELF file that is no cubin", 0)
    if not count:
        return []
    if entry_size != SHDR.size or table + count * SHDR.size > len(image) or names_index >= count:
        raise _fault("the section headers of a cubin do not fit", table)
    headers = list(SHDR.iter_unpack(image[table : table + count * SHDR.size]))
    for fields in headers:
        if fields[1] in (SectionType.SYMTAB, SectionType.STRTAB) and fields[4] + fields[5] > len(image):
            raise _fault("symbols or strings pass the end of their cubin", fields[4])
    names = _Section(headers[names_index])
    if names.kind != SectionType.STRTAB:
        raise _fault("the sections of a cubin have no names", table)
    return [_Section(fields, _string(image, names, fields[0])) for fields in headers]


def _string(image: bytes, strings: _Section, at: int) -> str:
    limit = min(strings.size, at + _LONGEST_NAME)
    end = image.find(b"\0", strings.offset + at, strings.offset + limit) if at < limit else -1
    if end < 0:
        raise _fault("a name of a cubin is not in its string table", strings.offset + at)
    return image[strings.offset + at : end].decode("utf-8", "replace")


def _fault(what: str, offset: int) -> ElfFormatError:
    return ElfFormatError(what, place=Place(offset=offset))
