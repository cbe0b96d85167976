"""``verify`` on conda packages: sound ones of either format, and faults planted into the slimmed copy."""

from __future__ import annotations

import io
import json
import tarfile
from typing import TYPE_CHECKING

import pytest

from builders.conda import CondaPackage, Item, hardlink, symlink, tars_of, write_conda
from corpus.recipes import BY_NAME
from integration import conda_pruning
from wheelslim.archive.artifact import ArtifactKind
from wheelslim.archive.conda_rewrite import CondaOptions
from wheelslim.errors import VerifyError
from wheelslim.proof.promise import Promise
from wheelslim.verification import Verification, verify

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LIBRARY = "lib/libdemo.so.1"


@pytest.fixture
def package() -> CondaPackage:
    return CondaPackage(
        [
            Item(LIBRARY, BY_NAME["many_containers"].path.read_bytes(), mode=0o755),
            symlink("lib/libdemo.so", "libdemo.so.1"),
            hardlink("lib/libhard.so", LIBRARY),
            Item("share/note", b"a note"),
        ]
    )


@pytest.mark.parametrize("kind", [".conda", ".tar.bz2"])
@pytest.mark.parametrize("format", [None, ArtifactKind.CONDA, ArtifactKind.TAR_BZ2])
def test_slimmed_packages_hold_in_either_format(
    package: CondaPackage, tmp_path: Path, kind: str, format: ArtifactKind | None
) -> None:
    original = package.write(tmp_path, kind)
    options = CondaOptions(compression_level=3, format=format, build_suffix="sm86")
    slimmed, _ = conda_pruning.prune(original, tmp_path / "slim", "sm_86", options)
    result = verify(original, slimmed)
    assert result.holds, str(result.failure)
    found = {finding.promise: finding.what for finding in result.findings}
    assert "42 containers" in found[Promise.DEVICE_CODE]
    assert "4 paths of conda" in found[Promise.BOOKS]


def spoilt(
    package: CondaPackage, tmp_path: Path, change: Callable[[tarfile.TarInfo, bytes], bytes]
) -> Verification:
    """Slim the package, send every member through ``change``, and verify."""
    original = package.write(tmp_path)
    slimmed, _ = conda_pruning.prune(original, tmp_path / "slim", "sm_86")
    tars = {name: changed(data, change) for name, data in tars_of(slimmed).items()}
    info, payload = (next(data for name, data in tars.items() if part in name) for part in ("info", "pkg"))
    path = tmp_path / slimmed.name.replace("h0", "h1")
    write_conda(path, package.stem, info, payload)
    return verify(original, path)


def changed(data: bytes, change: Callable[[tarfile.TarInfo, bytes], bytes]) -> bytes:
    out = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(data)) as before,
        tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as after,
    ):
        for info in before:
            file = before.extractfile(info) if info.isreg() else None
            content = change(info, file.read() if file else b"")
            info.size = len(content)
            after.addfile(info, io.BytesIO(content))
    return out.getvalue()


def failures(result: Verification) -> dict[Promise, VerifyError]:
    return {finding.promise: finding.failure for finding in result.findings if finding.failure is not None}


def test_a_copy_packed_again_holds(package: CondaPackage, tmp_path: Path) -> None:
    assert spoilt(package, tmp_path, lambda _, data: data).holds


def test_a_byte_in_a_file(package: CondaPackage, tmp_path: Path) -> None:
    found = failures(spoilt(package, tmp_path, lambda i, d: b"A note" if i.name == "share/note" else d))
    assert found[Promise.MEMBERS].place.member == "share/note"
    assert "paths.json does not agree" in str(found[Promise.BOOKS])


def test_paths_json_that_lies(package: CondaPackage, tmp_path: Path) -> None:
    def change(info: tarfile.TarInfo, data: bytes) -> bytes:
        if info.name != "info/paths.json":
            return data
        document = json.loads(data)
        document["paths"][0]["sha256"] = "0" * 64
        return json.dumps(document).encode()

    found = failures(spoilt(package, tmp_path, change))
    assert set(found) == {Promise.BOOKS}
    assert LIBRARY in str(found[Promise.BOOKS])


def test_index_json_with_another_dependency(package: CondaPackage, tmp_path: Path) -> None:
    def change(info: tarfile.TarInfo, data: bytes) -> bytes:
        return data.replace(b'"depends": []', b'"depends": ["x"]') if info.name == "info/index.json" else data

    found = failures(spoilt(package, tmp_path, change))
    assert set(found) == {Promise.BOOKS}
    assert "'depends'" in str(found[Promise.BOOKS])


@pytest.mark.parametrize(
    ("field", "value", "member"),
    [
        ("mode", 0o644, LIBRARY),
        ("mtime", 7, LIBRARY),
        ("uname", "root", LIBRARY),
        ("linkname", "libother.so", "lib/libdemo.so"),
    ],
)
def test_attributes_that_changed(
    package: CondaPackage, tmp_path: Path, field: str, value: object, member: str
) -> None:
    def change(info: tarfile.TarInfo, data: bytes) -> bytes:
        if info.name == member:
            setattr(info, field, value)
        return data

    found = failures(spoilt(package, tmp_path, change))
    assert found[Promise.ATTRIBUTES].place.member == member


def test_packages_of_two_names_are_unrelated(package: CondaPackage, tmp_path: Path) -> None:
    other = CondaPackage(package.items, name="other").write(tmp_path)
    with pytest.raises(VerifyError, match=r"unrelated.*cudademo 1\.0.*other 1\.0"):
        verify(package.write(tmp_path), other, "sm_86")
