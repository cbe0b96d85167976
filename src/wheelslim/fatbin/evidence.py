"""Whether bytes that parse as a container are one: needed where no section says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelslim.fatbin.layout import EntryFlag, EntryKind
from wheelslim.fatbin.model import Compression

if TYPE_CHECKING:
    from wheelslim.fatbin.model import Container, Entry
    from wheelslim.fatbin.reader import HeaderWindow

_KINDS = frozenset(EntryKind)
_SM_NUMBERS = range(10, 1000)
_WITHOUT_SM = frozenset({EntryKind.CONCATENATED, EntryKind.INDEX})

_OBFUSCATED = int(EntryFlag.OBFUSCATED)
_ELF = b"\x7fELF"
_ZSTD = (0xFD2FB528).to_bytes(4, "little")
_ELF_KINDS = frozenset({EntryKind.CUBIN, EntryKind.CUBIN_VARIANT})
_PRINTABLE = frozenset(range(0x20, 0x7F)) | {0x09, 0x0A, 0x0D}


def is_plausible(container: Container, window: HeaderWindow) -> bool:
    """Whether the container has entries, all of known kinds, with payloads that begin as theirs do.

    ``window`` reads the source that the container's offsets count from. A container without
    entries is 16 bytes that data may hold by chance, and there is nothing in it to prune.
    """
    return bool(container.entries) and all(_is_entry(entry, window) for entry in container.entries)


def _is_entry(entry: Entry, window: HeaderWindow) -> bool:
    has_number = entry.sm in _SM_NUMBERS or (entry.sm == 0 and entry.kind in _WITHOUT_SM)
    if entry.kind not in _KINDS or not has_number or not entry.payload_size:
        return False
    if entry.flags & _OBFUSCATED or entry.compression is Compression.LZ4:
        return True  # An LZ4 block has no magic.
    return _begins_well(entry, window.read(entry.payload_offset, 4))


def _begins_well(entry: Entry, start: bytes) -> bool:
    if entry.compression is Compression.ZSTD:
        return start == _ZSTD
    if entry.kind in _ELF_KINDS:
        return start == _ELF
    return entry.kind != EntryKind.PTX or _PRINTABLE.issuperset(start)
