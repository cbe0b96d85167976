"""ELF headers, from bytes that a builder made and from bytes that are broken."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import elf as make
from builders.sources import source_of
from wheelslim.elf.reader import is_elf, is_elf64, read_dynamic, read_elf
from wheelslim.errors import ElfFormatError, WheelslimError

if TYPE_CHECKING:
    from wheelslim.elf.model import ElfFile

X86_64 = 62
TEXT = make.Section(".text", 100, b"\xc3" * 100, flags=make.SHF_ALLOC | make.SHF_EXECINSTR, align=16)
DYNAMIC_TAGS = ((5, 0x111), (0x6FFFFEF5, 0x222), (0, 0), (7, 0x333))
DYNAMIC = make.Section(
    ".dynamic",
    64,
    b"".join(struct.pack("<qQ", *pair) for pair in DYNAMIC_TAGS),
    make.SHT_DYNAMIC,
    make.SHF_ALLOC | make.SHF_WRITE,
    entsize=16,
)
BSS = make.Section(".bss", 4000, b"", make.SHT_NOBITS, make.SHF_ALLOC | make.SHF_WRITE)
COMMENT = make.Section(".comment", 10, b"GCC: maybe", flags=0, align=1)


def image(**fields: object) -> make.Image:
    usual: dict[str, object] = {
        "machine": X86_64,
        "segments": (
            make.Segment(make.PF_R | make.PF_X, (TEXT,)),
            make.Segment(make.PF_R | make.PF_W, (DYNAMIC, BSS)),
        ),
        "align": 0x1000,
        "page": 0x1000,
        "extra": ((make.PT_DYNAMIC, make.PF_R, ".dynamic", 8),),
        "unloaded": (COMMENT,),
    }
    return make.Image(**(usual | fields))  # type: ignore[arg-type]


def read(data: bytes) -> ElfFile:
    with source_of(data, before=b"???") as source:
        return read_elf(source)


def test_segments_and_sections_are_read_as_they_were_laid_out() -> None:
    data, layout = image().build()
    elf = read(data)
    assert elf.size == len(data)
    assert [s.name for s in elf.sections] == ["", ".text", ".dynamic", ".bss", ".comment", ".shstrtab"]
    for name in (".text", ".dynamic", ".bss", ".comment"):
        section = elf.section(name)
        assert section is not None
        assert (section.sh_addr, section.sh_offset, section.sh_size) == (
            layout.address[name],
            layout.offset[name],
            layout.size[name],
        )
    assert [s.is_alloc for s in elf.sections] == [False, True, True, True, False, False]
    code, memory = elf.loads
    assert (code.p_offset, code.file_end) == (0, layout.offset[".text"] + 100)
    assert memory.address_end == layout.address[".bss"] + 4000
    assert memory.file_end == layout.offset[".dynamic"] + 64
    assert elf.sections[3].file_size == 0


def test_packing_what_was_read_gives_the_same_bytes() -> None:
    data, _ = image().build()
    elf = read(data)
    assert elf.header.pack() == data[:64]
    segments = b"".join(s.pack() for s in elf.segments)
    assert data[64 : 64 + len(segments)] == segments
    assert data[elf.header.e_shoff :] == b"".join(s.pack() for s in elf.sections)


def test_addresses_map_to_file_offsets_only_where_there_are_bytes() -> None:
    data, layout = image().build()
    elf = read(data)
    dynamic = layout.address[".dynamic"]
    assert elf.offset_of(dynamic) == layout.offset[".dynamic"]
    assert elf.offset_of(dynamic + 63) == layout.offset[".dynamic"] + 63
    assert elf.offset_of(dynamic + 56, 8) is not None
    assert elf.offset_of(dynamic + 57, 8) is None
    assert elf.offset_of(layout.address[".bss"]) is None
    assert elf.offset_of(2**63) is None


def test_the_dynamic_table_ends_at_the_first_null() -> None:
    data, layout = image().build()
    with source_of(data) as source:
        entries = read_dynamic(source, read_elf(source))
    start = layout.offset[".dynamic"]
    assert entries == ((start, 5, 0x111), (start + 16, 0x6FFFFEF5, 0x222))


def test_a_file_without_section_headers_or_dynamic_table_is_fine() -> None:
    data, _ = image(section_headers=False, extra=()).build()
    with source_of(data) as source:
        elf = read_elf(source)
        assert elf.sections == ()
        assert read_dynamic(source, elf) == ()


def test_elf_of_another_class_is_told_from_no_elf() -> None:
    data, _ = image().build()
    assert is_elf(data)
    assert is_elf64(data)
    small = make.with_header(data, ei_class=1)
    assert is_elf(small)
    assert not is_elf64(small)
    with pytest.raises(ElfFormatError, match="no 64-bit little-endian"):
        read(small)
    with pytest.raises(ElfFormatError, match="no 64-bit little-endian"):
        read(make.with_header(data, ei_data=2))
    with pytest.raises(ElfFormatError, match="no ELF file"):
        read(b"PK\x03\x04" + data[4:])
    with pytest.raises(ElfFormatError, match="cut off"):
        read(data[:63])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"e_phoff": 1 << 40}, "program header table passes the end"),
        ({"e_phentsize": 32}, "odd program header table"),
        ({"e_phnum": 0xFFFF}, "odd program header table"),
        ({"e_shoff": 1 << 40}, "section header table passes the end"),
        ({"e_shentsize": 40}, "odd section header table"),
        ({"e_shnum": 0xFFFE}, "odd section header table"),
    ],
)
def test_tables_that_cannot_be_are_named(fields: dict[str, int], message: str) -> None:
    data, _ = image().build()
    with pytest.raises(ElfFormatError, match=message):
        read(make.with_header(data, **fields))


def test_a_segment_or_section_that_passes_the_end_is_an_error_not_a_surprise_later() -> None:
    data, _ = image().build()
    broken = bytearray(data)
    struct.pack_into("<Q", broken, 64 + 32, len(data) + 1)  # p_filesz of the first PT_LOAD
    with pytest.raises(ElfFormatError, match="a segment passes the end"):
        read(bytes(broken))
    broken = bytearray(data)
    struct.pack_into("<Q", broken, 64 + 40, 1)  # its p_memsz
    with pytest.raises(ElfFormatError, match="smaller in memory"):
        read(bytes(broken))
    broken = bytearray(data)
    shoff = struct.unpack_from("<Q", data, 40)[0]
    struct.pack_into("<Q", broken, shoff + 64 + 32, len(data))  # sh_size of .text
    with pytest.raises(ElfFormatError, match=r"section \.text passes the end"):
        read(bytes(broken))


@given(st.data())
def test_damaged_bytes_give_a_result_or_an_error_of_ours(data: st.DataObject) -> None:
    raw = bytearray(image().build()[0])
    table = struct.unpack_from("<Q", raw, 40)[0]
    where = st.integers(0, 300) | st.integers(table, len(raw) - 1)
    for at in data.draw(st.lists(where, max_size=8)):
        raw[at] = data.draw(st.integers(0, 255))
    with source_of(bytes(raw[: data.draw(st.integers(0, len(raw)) | st.just(len(raw)))])) as source:
        try:
            read_dynamic(source, read_elf(source))
        except WheelslimError:
            return
