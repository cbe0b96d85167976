"""Loose device code in wheels and trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from builders import fatbin as make
from builders.conda import CondaPackage, Item
from builders.cubin import cubin
from builders.library import CudaLibrary
from builders.sources import source_of
from builders.wheel import Wheel
from corpus.recipes import PARTS
from wheelslim.archive.opener import open_artifact
from wheelslim.fatbin.reader import read_tiling
from wheelslim.loose.checksums import is_checksum_list, names_dropped, without
from wheelslim.loose.fatbin import slim_fatbin
from wheelslim.loose.plan import LoosePlan, plan_loose
from wheelslim.pieces import stream
from wheelslim.plan import Planner, Request
from wheelslim.targets import parse_targets

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from judges.cuobjdump import Cuobjdump


def planner(words: str) -> Planner:
    return Planner(Request(parse_targets(words)))


def planned(files: Mapping[str, bytes], words: str, directory: Path) -> LoosePlan:
    """Plan the same files as a wheel and as a tree, which have to agree."""
    wheel = Wheel(files).write(directory)
    tree = directory / "tree"
    for name, data in files.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    with open_artifact(wheel) as one, open_artifact(tree) as other:
        plan, again = plan_loose(one, planner(words)), plan_loose(other, planner(words))
    assert (plan.dropped, plan.kept, plan.served) == (again.dropped, again.kept, again.served)
    return plan


def odd_cubin() -> bytes:
    image = bytearray(cubin(["k"], sm=90))
    image[8] = 9
    return bytes(image)


def test_cubins_go_by_their_own_bytes_and_names(tmp_path: Path) -> None:
    files = {
        "pkg/fmhaSm100fKernel.cubin": cubin(["k"], sm=100),
        "pkg/fmhaSm103aKernel.cubin": cubin(["k"], sm=103),
        "pkg/unnamed": cubin(["k"], sm=103),
        "pkg/odd.cubin": odd_cubin(),
        "pkg/wrong_sm90.cubin": cubin(["k"], sm=103),
        "pkg/text.cubin": b"not a cubin at all, whatever it is called".ljust(80),
        "pkg/__init__.py": b"",
    }
    plan = planned(files, "sm_100", tmp_path)
    assert set(plan.dropped) == {"pkg/fmhaSm103aKernel.cubin", "pkg/unnamed"}
    assert set(plan.kept) == {"pkg/fmhaSm100fKernel.cubin", "pkg/odd.cubin", "pkg/wrong_sm90.cubin"}
    assert "ABI version" in plan.kept["pkg/odd.cubin"]
    assert plan.dropped_size == len(files["pkg/unnamed"]) + len(files["pkg/fmhaSm103aKernel.cubin"])
    assert plan.served == {"sm_100"}
    assert set(plan.unknown) == {"pkg/odd.cubin", "pkg/wrong_sm90.cubin"}
    assert plan.labels == {"sm_100f": 1, "sm_103": 1, "sm_103a": 1}


def test_a_target_that_nothing_runs_on_is_not_served(tmp_path: Path) -> None:
    plan = planned({"a_sm100a.cubin": cubin(["k"], sm=100)}, "sm_90", tmp_path)
    assert plan.served == frozenset()
    assert plan.unknown == ()


def test_fatbins_are_slimmed_or_go(tmp_path: Path) -> None:
    files = {
        "pkg/many.fatbin": make.container(["sm_75", "sm_86", "sm_90", "compute_90"]),
        "pkg/hopper.fatbin": make.container(["sm_90"]),
        "pkg/broken.fatbin": make.container(["sm_90"])[:-9],
    }
    plan = planned(files, "sm_86", tmp_path)
    assert set(plan.dropped) == {"pkg/hopper.fatbin"}
    assert plan.fatbins == {"pkg/many.fatbin"}
    assert "pkg/broken.fatbin" in plan.kept
    assert plan.served == {"sm_86"}


def test_a_slimmed_fatbin_holds_what_the_targets_run(cuobjdump: Cuobjdump, tmp_path: Path) -> None:
    path = tmp_path / "slim.fatbin"
    with (PARTS / "scale.fatbin").open("rb") as file:
        data = file.read()
    with source_of(data + data, before=b"\xaa" * 3) as source:
        pieces = slim_fatbin(source, planner("sm_86 sm_90"))
        assert pieces is not None
        path.write_bytes(b"".join(stream(pieces, source)))
    with source_of(path.read_bytes()) as source:
        assert len(read_tiling(source, 0).containers) == 2
        assert slim_fatbin(source, planner("sm_86 sm_90")) is None
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert cuobjdump.listing(path) == {"sm_86": 1, "sm_90": 1}


def test_ptx_files(tmp_path: Path) -> None:
    head = b"// generated\n.version 8.0\n.target sm_%d\n.address_size 64\n"
    files = {"a.ptx": head % 80, "b.ptx": head % 90, "c.ptx": b"// nothing here\n"}
    plan = planned(files, "sm_86", tmp_path)
    assert set(plan.dropped) == {"b.ptx"}
    assert set(plan.kept) == {"a.ptx", "c.ptx"}


def test_libraries_that_differ_in_the_architecture_alone(tmp_path: Path) -> None:
    """As TensorRT's builder resources: no device code that we know of inside, chosen by name."""
    plain = CudaLibrary(()).build().data
    files = {f"trt/libresource_sm{number}.so.10": plain for number in (75, 80, 86, 90)}
    files["trt/libalone_sm90.so"] = plain
    plan = planned(files, "sm_86", tmp_path)
    assert set(plan.dropped) == {f"trt/libresource_sm{number}.so.10" for number in (75, 80, 90)}


def test_a_library_with_code_for_a_target_stays_whatever_its_name(tmp_path: Path) -> None:
    files = {
        "fa/lib_sm80.so": CudaLibrary((make.container(["sm_80", "sm_90"]),)).build().data,
        "fa/lib_sm100.so": CudaLibrary((make.container(["sm_100"]),)).build().data,
    }
    plan = planned(files, "sm_90", tmp_path)
    assert set(plan.dropped) == {"fa/lib_sm100.so"}
    assert plan.served == {"sm_90"}


def test_a_library_that_another_needs_stays(tmp_path: Path) -> None:
    plain = CudaLibrary(()).build().data
    files = {
        "trt/libr_sm75.so": plain,
        "trt/libr_sm86.so": plain,
        "trt/main.so": CudaLibrary((), needed=("libr_sm75.so",)).build().data,
    }
    assert planned(files, "sm_86", tmp_path).dropped == {}


def test_an_artifact_that_is_one_file_is_not_dropped(tmp_path: Path) -> None:
    path = tmp_path / "one_sm90.cubin"
    path.write_bytes(cubin(["k"], sm=90))
    with open_artifact(path) as artifact:
        assert not plan_loose(artifact, planner("sm_86"))


def test_conda_packages_are_walked_only_where_a_name_hints_at_loose_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A walk means to decompress all of a package."""
    names = ("lib/pkg/k_sm90.cubin", "lib/pkg/k_sm86.cubin")
    package = CondaPackage([Item(name, cubin(["k"], sm=int(name[-8:-6]))) for name in names])
    with open_artifact(package.write(tmp_path)) as artifact:
        plan = plan_loose(artifact, planner("sm_86"))
        assert (set(plan.dropped), set(plan.kept)) == ({names[0]}, {names[1]})
    plain = CondaPackage([Item("lib/pkg/library.so", CudaLibrary(()).build().data)], name="plain")
    with open_artifact(plain.write(tmp_path)) as artifact:
        monkeypatch.setattr(artifact, "walk", lambda *_: pytest.fail("the package was walked"))
        assert not plan_loose(artifact, planner("sm_86"))


DIGEST = "a" * 64


def test_lists_of_checksums() -> None:
    text = f"{DIGEST}  one.cubin\n{DIGEST} *sub/two.cubin\r\nnot a line\n{DIGEST}  three.cubin"
    assert is_checksum_list("pkg/cubins/checksums.txt")
    assert not is_checksum_list("pkg/requirements.txt")
    dropped = {"pkg/one.cubin", "pkg/sub/two.cubin", "three.cubin"}
    assert without(text, "pkg/checksums.txt", dropped) == f"not a line\n{DIGEST}  three.cubin"
    assert names_dropped(text, "pkg/checksums.txt", dropped) == 2
    assert without(text, "other/checksums.txt", dropped) is None


def test_lists_are_found(tmp_path: Path) -> None:
    files = {"pkg/checksums.txt": b"", "pkg/k_sm90.cubin": cubin(["k"], sm=90)}
    assert planned(files, "sm_90", tmp_path).lists == ("pkg/checksums.txt",)
