"""New bytes in a scratch file, and the pieces that read them back."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from builders.sources import source_of
from wheelslim.elf.filemap import FileMap, Gap, Overlay
from wheelslim.errors import StorageError
from wheelslim.pieces import Copy, Data, stream, total_size
from wheelslim.spool import SpoolFile

if TYPE_CHECKING:
    from wheelslim.pieces import Piece


def test_pieces_read_back_what_was_appended(tmp_path: Path) -> None:
    with SpoolFile(tmp_path) as spool, source_of(b"original") as source:
        first, second = spool.append(b"first"), spool.append(b"second")
        pieces: list[Piece] = [second, Copy(0, 4), Data(b"-"), first]
        assert b"".join(stream(pieces, source, 3)) == b"secondorig-first"
        assert total_size(pieces) == 16


def test_a_cut_through_a_spooled_piece_keeps_the_rest() -> None:
    with SpoolFile() as spool, source_of(bytes(range(30))) as source:
        spool.append(b"something else")
        piece = spool.append(b"abcdefghij")
        filemap = FileMap(30, [Gap(12, 15)])
        pieces = filemap.pieces([Overlay(10, (piece,))])
        assert b"".join(stream(pieces, source)) == bytes(range(10)) + b"abfghij" + bytes(range(20, 30))


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    with SpoolFile(tmp_path) as spool:
        spool.append(b"x" * 1000)
    assert list(tmp_path.iterdir()) == []


def test_no_file_appears_without_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: pytest.fail("a file was made"))
    with SpoolFile():
        pass


def test_no_room_is_an_io_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with SpoolFile(Path("/nowhere")) as spool, pytest.raises(StorageError, match="No space left"):
        spool.append(b"x")
