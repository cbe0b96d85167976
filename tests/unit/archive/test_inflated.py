"""A member made readable: its hash is taken while it is inflated."""

from __future__ import annotations

import hashlib
import random
import zipfile
from typing import TYPE_CHECKING

import pytest

from builders.wheel import Member, Wheel
from wheelslim.archive import scratch as scratch_module
from wheelslim.archive.inflated import inflate_member
from wheelslim.archive.scratch import Scratch, ScratchFile
from wheelslim.archive.wheel import WheelArtifact
from wheelslim.archive.workers import Workers
from wheelslim.errors import ArchiveError

if TYPE_CHECKING:
    from pathlib import Path

DATA = random.Random(5).randbytes(900_000) + bytes(1_500_000) + b"the end"
NAME, STORED = "demo/lib.so", "demo/stored.so"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return Wheel({NAME: DATA, STORED: Member(DATA, stored=True)}).write(tmp_path)


def test_the_hash_is_that_of_the_whole_content(wheel: Path, tmp_path: Path) -> None:
    with WheelArtifact(wheel) as artifact, Scratch(tmp_path) as scratch, Workers(1, 2) as workers:
        inflated = inflate_member(artifact.archive, artifact.entry(NAME), scratch, workers)
        assert inflated.sha256 is not None
        assert inflated.sha256.result() == hashlib.sha256(DATA).hexdigest()
        assert inflated.source.read(0, len(DATA)) == DATA


def test_no_hash_of_what_is_not_inflated_or_looked_at_alone(wheel: Path, tmp_path: Path) -> None:
    with WheelArtifact(wheel) as artifact, Scratch(tmp_path) as scratch, Workers(1, 2) as workers:
        assert inflate_member(artifact.archive, artifact.entry(STORED), scratch, workers).sha256 is None
        assert inflate_member(artifact.archive, artifact.entry(NAME), scratch).sha256 is None


def test_the_scratch_file_of_a_damaged_member_is_free_again(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[ScratchFile] = []

    def make(directory: Path) -> ScratchFile:
        made.append(ScratchFile(directory))
        return made[-1]

    monkeypatch.setattr(scratch_module, "ScratchFile", make)
    data = bytearray(wheel.read_bytes())
    with zipfile.ZipFile(wheel) as archive:
        data[archive.getinfo(NAME).header_offset + 500_000] ^= 0xFF
    wheel.write_bytes(data)
    with WheelArtifact(wheel) as artifact, Scratch(tmp_path) as scratch, Workers(1, 2) as workers:
        for _ in range(3):  # More often than there are threads that hash.
            with pytest.raises(ArchiveError):
                inflate_member(artifact.archive, artifact.entry(NAME), scratch, workers)
        assert scratch.take(1) is made[0]
    assert len(made) == 1
