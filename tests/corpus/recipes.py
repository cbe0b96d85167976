"""What each library of the corpus is made of: the build script follows it, tests compare with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
LIBRARIES = HERE / "lib"
PARTS = HERE / "parts"

USUAL = ("sm_80", "sm_86", "sm_90", "sm_120")
MANY = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120", "compute_120")

COMPRESS = ("-Xfatbin", "-compress-all", "--compress-mode")
ONE_SEGMENT = ("-z", "max-page-size=0x200000", "-z", "noseparate-code")
LONG_PATH = "/opt/" + "/".join(["a-long-directory-name"] * 30)


@dataclass(frozen=True)
class Unit:
    """One translation unit; ``linked`` is True for ``-rdc=true``, ``defines`` go to the compiler."""

    source: str
    linked: bool = False
    defines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recipe:
    """How nvcc and the linker make ``lib/NAME.so``, and what must be in it.

    ``codes`` are the words of ``-gencode …,code=``: ``sm_90a``, ``compute_120``, ``lto_86``.
    ``patchelf`` holds argument lists that are run on the linked library one after the other.
    """

    name: str
    why: str
    units: tuple[Unit, ...] = (Unit("add.cu"), Unit("scale.cu"))
    codes: tuple[str, ...] = USUAL
    nvcc: tuple[str, ...] = ()
    linker: tuple[str, ...] = ()
    patchelf: tuple[tuple[str, ...], ...] = ()

    @property
    def path(self) -> Path:
        """The committed library."""
        return LIBRARIES / f"{self.name}.so"

    @property
    def linked_units(self) -> int:
        """How many containers lie in ``__nv_relfatbin``."""
        return sum(unit.linked for unit in self.units)

    @property
    def cubins(self) -> tuple[str, ...]:
        """The codes that nvcc compiles down to machine code, in its order."""
        return tuple(code for code in self.codes if code.startswith("sm_"))

    @property
    def containers(self) -> tuple[tuple[str, ...], ...]:
        """The codes of each container of ``.nv_fatbin``, in file order.

        The first is the result of the device link. nvcc runs it for every shared library, -rdc or
        not; without -rdc its cubins are empty, and it never holds PTX.
        """
        return (self.cubins, *self._plain)

    @property
    def registered(self) -> tuple[tuple[str, ...], ...]:
        """The codes of each container that reaches the CUDA runtime at load, in no order.

        Without -rdc, nobody registers the result of the device link.
        """
        return self.containers if self.linked_units else self._plain

    @property
    def _plain(self) -> tuple[tuple[str, ...], ...]:
        return tuple(self.codes for unit in self.units if not unit.linked)


_NUMBERED = tuple(Unit("numbered.cu", defines=(f"NUMBER={number}",)) for number in range(40))
_RDC = (Unit("twice.cu", linked=True), Unit("add_device.cu", linked=True))

RECIPES = (
    Recipe("many_archs", "eight targets, PTX among them, in two containers", codes=MANY),
    Recipe("plain", "nothing compressed, no PTX", nvcc=("-no-compress",)),
    Recipe("zstd", "every entry in zstd", codes=MANY, nvcc=(*COMPRESS, "size")),
    Recipe("lz4", "every entry in LZ4", codes=MANY, nvcc=(*COMPRESS, "speed")),
    Recipe(
        "suffixes",
        "architecture-specific (a) and family-specific (f) code beside the plain one",
        units=(Unit("add.cu"),),
        codes=("sm_90", "sm_90a", "sm_100a", "sm_100f", "sm_103", "sm_120f", "sm_121a", "compute_90a"),
    ),
    Recipe("ptx_only", "only PTX: nvcc itself writes an empty container", codes=("compute_75", "compute_90")),
    Recipe(
        "rdc",
        "device-linked: __nv_relfatbin, a version 2 wrapper, and one plain unit between",
        units=(_RDC[0], Unit("scale.cu"), _RDC[1]),
        codes=(*USUAL, "compute_120"),
    ),
    Recipe(
        "lto", "device-linked with LTO-IR entries (kind 8)", units=_RDC, codes=("sm_86", "lto_86", "sm_90")
    ),
    Recipe(
        "rdc_ptx",
        "device-linked, only PTX: the linked container is empty, and registered nevertheless",
        units=_RDC,
        codes=("compute_75",),
        nvcc=("-cudadevrt", "none"),
    ),
    Recipe(
        "many_containers",
        "41 containers, so that a cut frees more than 64 KiB",
        units=(Unit("add.cu"), *_NUMBERED),
        codes=("sm_80", "sm_86", "sm_90"),
        nvcc=(*COMPRESS, "size"),
        linker=("--strip-all",),
    ),
    Recipe("relr", "RELR relocations", linker=("-z", "pack-relative-relocs")),
    Recipe(
        "one_segment_2m",
        "one RX segment for everything read-only, 2 MiB alignment",
        linker=(*ONE_SEGMENT, "-z", "norelro"),
    ),
    Recipe("lld", "linked by ld.lld", nvcc=("-Xcompiler", "-fuse-ld=lld")),
    Recipe(
        "lld_2m",
        "linked by ld.lld: one RX segment, 2 MiB alignment, RELRO in a segment of its own",
        nvcc=("-Xcompiler", "-fuse-ld=lld"),
        linker=(*ONE_SEGMENT, "--no-rosegment"),
    ),
    Recipe("gold", "linked by gold", nvcc=("-Xcompiler", "-fuse-ld=gold")),
    Recipe(
        "sysv_hash",
        "DT_HASH and no build id: .hash follows the headers",
        linker=("--hash-style=both", "--build-id=none"),
    ),
    Recipe("patchelf_rpath", "patchelf: a long RUNPATH", patchelf=(("--set-rpath", LONG_PATH),)),
    Recipe(
        "patchelf_twice",
        "patchelf, twice: a dependency, then a long RUNPATH",
        patchelf=(("--add-needed", "libm.so.6"), ("--set-rpath", LONG_PATH)),
    ),
    Recipe(
        "patchelf_2m",
        "patchelf on a library of one 2 MiB-aligned RX segment",
        linker=(*ONE_SEGMENT, "-z", "norelro"),
        patchelf=(("--set-rpath", LONG_PATH),),
    ),
)
BY_NAME = {recipe.name: recipe for recipe in RECIPES}
