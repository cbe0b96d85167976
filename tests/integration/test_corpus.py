"""The corpus is what its recipes say, in the eyes of judges that are not ours."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from corpus.recipes import PARTS, RECIPES, Recipe
from judges import readelf

if TYPE_CHECKING:
    from judges.cuobjdump import Cuobjdump
    from judges.loader import Loader

KINDS = {1: "compute", 2: "sm", 8: "lto"}

every_library = pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)


def as_listed(code: str) -> str:
    """Write a code as cuobjdump lists it: with the a of a cubin, without the f."""
    return code if code.startswith("compute") else code.rstrip("f")


@every_library
def test_holds_the_device_code_of_its_recipe(recipe: Recipe, cuobjdump: Cuobjdump) -> None:
    planned = [*recipe.containers, *[recipe.codes] * recipe.linked_units]
    codes = [as_listed(code) for container in planned for code in container if not code.startswith("lto")]
    assert cuobjdump.listing(recipe.path) == Counter(codes)


@every_library
def test_is_sound(recipe: Recipe) -> None:
    readelf.sound(recipe.path)


@every_library
def test_loads_and_registers_its_containers(recipe: Recipe, loader: Loader) -> None:
    loaded = loader.load(recipe.path, "answer")
    assert loaded.values == {"answer": "42"}
    registered = [
        sorted(f"{KINDS[entry.kind]}_{entry.sm}" for entry in call.entries) for call in loaded.registered
    ]
    expected = [sorted(code.rstrip("af") for code in container) for container in recipe.registered]
    assert sorted(registered) == sorted(expected)
    assert sum(len(call.prelinked) for call in loaded.registered) == recipe.linked_units


@pytest.mark.parametrize("name", ["patchelf_rpath", "patchelf_twice", "patchelf_2m"])
def test_patchelf_moved_the_tables_behind_everything(name: str) -> None:
    recipe = next(recipe for recipe in RECIPES if recipe.name == name)
    reading = readelf.read(recipe.path)
    assert reading.section(".dynstr").address >= reading.loads[-1].address


def test_the_lld_libraries_leave_the_wrappers_empty() -> None:
    lld, gnu = (next(recipe for recipe in RECIPES if recipe.name == name) for name in ("lld", "plain"))
    for recipe, empty in ((lld, True), (gnu, False)):
        wrappers = readelf.read(recipe.path).section(".nvFatBinSegment")
        data = recipe.path.read_bytes()[wrappers.offset :][: wrappers.size]
        addresses = [int.from_bytes(data[at + 8 : at + 16], "little") for at in range(0, len(data), 24)]
        assert all(not address for address in addresses) is empty


def test_the_concatenated_part_holds_four_cubins(cuobjdump: Cuobjdump) -> None:
    assert cuobjdump.listing(PARTS / "concatenated.fatbin") == Counter(["sm_80", "sm_86", "sm_90", "sm_120"])
