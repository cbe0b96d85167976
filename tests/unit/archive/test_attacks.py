"""Every row of the tables of attacks: refused with its reason, or carried through as it was."""

from __future__ import annotations

import io
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest

from builders.conda import tars_of, write_conda
from builders.rewriters import MARK, CuttingRewriter, expected
from judges.strict_zip import strict_zip_faults
from reliability.archive_attacks import (
    LIBRARY,
    NAME,
    TAR_ATTACKS,
    ZIP_ATTACKS,
    TarAttack,
    ZipAttack,
    conda_package,
)
from reliability.attack_page import PAGE, page
from unit.archive.conda_rewriters import Cutter
from wheelslim.archive.conda import CondaArtifact
from wheelslim.archive.conda_rewrite import CondaOptions, rewrite_conda
from wheelslim.archive.wheel import WheelArtifact
from wheelslim.archive.wheel_check import verify_wheel_container
from wheelslim.archive.wheel_rewrite import WheelOptions, rewrite_wheel
from wheelslim.errors import ArchiveError, UsageError

if TYPE_CHECKING:
    from pathlib import Path


class Rewriter(CuttingRewriter):
    """Wants marked files, those whose head does not inflate, too."""

    def wants(self, name: str, size: int, head: bytes) -> bool:
        return head.startswith(MARK) or name.endswith("lib.so")

    def telling_part(self, name: str, size: int, head: bytes) -> tuple[int, int] | None:
        return None


def rewrite(wheel: Path, *, check_input: bool = True) -> Path:
    """Rewrite and prove, as ``prune`` does."""
    out = wheel.with_name("out.whl")
    out.touch()
    with WheelArtifact(wheel) as artifact:
        result = rewrite_wheel(artifact, out, Rewriter(), WheelOptions(jobs=1, check_input=check_input))
        changed = {one.name for one in result.changed}
        dropped = set(result.dropped)
        verify_wheel_container(
            artifact, out, changed, dropped, {artifact.stamp_name}, read_back=result.changed
        )
    return out


def carried(attack: ZipAttack, wheel: Path) -> None:
    """The result differs in its library, RECORD and stamp alone, and is no more ambiguous than before."""
    out = rewrite(wheel)
    assert set(strict_zip_faults(out)) <= set(strict_zip_faults(wheel))
    with zipfile.ZipFile(wheel) as before, zipfile.ZipFile(out) as after:
        assert after.comment == before.comment
        for old in before.infolist():
            new = after.getinfo(old.filename)
            assert (new.external_attr, new.comment) == (old.external_attr, old.comment)
            if old.filename == "demo/lib.so":
                assert after.read(new) == expected(LIBRARY)
            elif not old.filename.endswith("/RECORD"):
                assert after.read(new) == before.read(old)
    if attack.lost:
        assert attack.lost in wheel.read_bytes()
        assert attack.lost not in out.read_bytes()


@pytest.mark.parametrize("attack", ZIP_ATTACKS, ids=lambda attack: f"{attack.group}: {attack.name}")
def test_wheels(attack: ZipAttack, tmp_path: Path) -> None:
    wheel = tmp_path / NAME
    wheel.write_bytes(attack.build())
    if attack.refused is None:
        if attack.large:
            with WheelArtifact(wheel) as artifact:
                assert len(artifact.archive.entries) > 1 << 16
                artifact.record()
        else:
            carried(attack, wheel)
        return
    if attack.late:
        WheelArtifact(wheel).close()
    with pytest.raises(ArchiveError, match=attack.refused) as caught:
        rewrite(wheel)
    assert caught.value.place.artifact == str(wheel)


@pytest.mark.parametrize(
    "attack",
    [attack for attack in ZIP_ATTACKS if attack.late and "another member" in attack.name],
    ids=lambda attack: attack.name,
)
def test_what_is_neither_changed_nor_checked_keeps_its_faults(attack: ZipAttack, tmp_path: Path) -> None:
    wheel = tmp_path / NAME
    wheel.write_bytes(attack.build())
    out = rewrite(wheel, check_input=False)
    assert stored(out, "demo/a") == stored(wheel, "demo/a")


def stored(wheel: Path, name: str) -> bytes:
    """A member's bytes as they lie in the file; its local header has no extra fields."""
    with zipfile.ZipFile(wheel) as archive:
        info = archive.getinfo(name)
    start = info.header_offset + 30 + len(name)
    return wheel.read_bytes()[start : start + info.compress_size]


@pytest.mark.parametrize("attack", TAR_ATTACKS, ids=lambda attack: attack.name)
def test_conda_packages(attack: TarAttack, tmp_path: Path) -> None:
    package, out = tmp_path / "a.conda", tmp_path / "out.conda"
    write_conda(package, "a", *conda_package(attack))
    out.touch()
    with CondaArtifact(package) as artifact:
        options = CondaOptions(compression_level=1, jobs=1)
        if attack.refused is not None:
            with pytest.raises(ArchiveError, match=attack.refused):
                rewrite_conda(artifact, out, Cutter(), options)
            return
        rewrite_conda(artifact, out, Cutter(), options)
    with (
        tarfile.open(fileobj=io.BytesIO(tars_of(package)["pkg"])) as before,
        tarfile.open(fileobj=io.BytesIO(tars_of(out)["pkg"])) as after,
    ):
        facts = [(one.name, one.type, one.linkname, one.mode) for one in before.getmembers()]
        assert [(one.name, one.type, one.linkname, one.mode) for one in after.getmembers()] == facts


def test_the_page_has_the_rows_of_the_table() -> None:
    """``python -m reliability.attack_page`` writes it."""
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text


def test_the_limit_of_wheels_can_be_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = next(attack for attack in ZIP_ATTACKS if attack.name.startswith("1.3 GiB"))
    (tmp_path / NAME).write_bytes(bomb.build())
    with pytest.raises(ArchiveError, match="WHEELSLIM_MAX_RATIO=2000"):
        WheelArtifact(tmp_path / NAME)
    monkeypatch.setenv("WHEELSLIM_MAX_RATIO", "2000")
    WheelArtifact(tmp_path / NAME).close()


def test_the_limit_of_conda_packages_can_be_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = next(attack for attack in TAR_ATTACKS if attack.name.startswith("1 TiB"))
    write_conda(tmp_path / "a.conda", "a", *conda_package(bomb))
    monkeypatch.setenv("WHEELSLIM_MAX_RATIO", "inf")
    with CondaArtifact(tmp_path / "a.conda") as artifact, pytest.raises(ArchiveError, match="truncated"):
        list(artifact.walk(lambda member, head: False))
    monkeypatch.setenv("WHEELSLIM_MAX_RATIO", "a lot")
    with pytest.raises(UsageError, match="no positive number"):
        CondaArtifact(tmp_path / "a.conda")
