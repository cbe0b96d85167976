"""Product names of NVIDIA GPUs and the compute capability of each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING

from wheelslim.architecture import ComputeCapability

if TYPE_CHECKING:
    from collections.abc import Mapping


class Evidence(Enum):
    """Where a row of the table comes from."""

    DOCUMENTED = "NVIDIA's pages 'CUDA GPU Compute Capability' and 'Legacy CUDA GPU Compute Capability'"
    INFERRED = "a variant of a documented product with the same chip"


@dataclass(frozen=True, slots=True)
class _Row:
    """Products of one compute capability; ``names`` are keys (see ``lookup``) with spaces between."""

    capability: ComputeCapability
    evidence: Evidence
    names: str


def _documented(major: int, minor: int, names: str) -> _Row:
    return _Row(ComputeCapability(major, minor), Evidence.DOCUMENTED, names)


def _inferred(major: int, minor: int, names: str) -> _Row:
    return _Row(ComputeCapability(major, minor), Evidence.INFERRED, names)


# Left out on purpose: names that NVIDIA gave to chips of several generations (bare RTX 6000,
# Titan X, Nano, GTX 860M). ``resembling`` offers the full names for them.
_TABLE = (
    # Kepler
    _documented(3, 0, "k10"),
    _documented(3, 2, "tk1"),
    _documented(3, 5, "k20 k20x k40 gtxtitan gtxtitanblack"),
    _documented(3, 7, "k80"),
    # Maxwell
    _documented(5, 0, "gtx750 gtx750ti k620 k1200 k2200"),
    _inferred(5, 0, "m10"),
    _documented(5, 2, "m4 m6 m40 m60 m2000 m4000 m5000 m6000"),
    _documented(5, 2, "gtx950 gtx960 gtx970 gtx980 gtx980ti gtxtitanx"),
    _documented(5, 3, "tx1 jetsonnano"),
    # Pascal
    _documented(6, 0, "p100 gp100"),
    _documented(6, 1, "p4 p6 p40 p400 p600 p620 p1000 p2000 p2200 p4000 p5000 p6000"),
    _documented(6, 1, "gt1030 gtx1050 gtx1050ti gtx1060 gtx1070 gtx1070ti gtx1080 gtx1080ti"),
    _documented(6, 1, "titanxpascal titanxp"),
    _documented(6, 2, "tx2"),
    _inferred(6, 2, "tx2i tx2nx"),
    # Volta
    _documented(7, 0, "v100 gv100 titanv"),
    _inferred(7, 0, "v100s"),
    _documented(7, 2, "xavier"),
    _inferred(7, 2, "xaviernx"),
    # Turing
    _documented(7, 5, "t4 quadrortx3000 quadrortx4000 quadrortx5000 quadrortx6000 rtx8000"),
    _documented(7, 5, "t400 t600 t1000 t1200 titanrtx"),
    _documented(7, 5, "gtx1650 gtx1650super gtx1650ti gtx1660 gtx1660super gtx1660ti"),
    _documented(7, 5, "rtx2060 rtx2060super rtx2070 rtx2070super rtx2080 rtx2080super rtx2080ti"),
    _inferred(7, 5, "t4g t500 gtx1630 mx450 mx550"),
    # Ampere
    _documented(8, 0, "a100 a30"),
    _inferred(8, 0, "a100x a30x a800"),
    _documented(8, 6, "a2 a10 a16 a40 a2000 a3000 a4000 a5000 a6000"),
    _documented(8, 6, "rtx3050 rtx3050ti rtx3060 rtx3060ti rtx3070 rtx3070ti"),
    _documented(8, 6, "rtx3080 rtx3080ti rtx3090 rtx3090ti"),
    _inferred(8, 6, "a10g a10m a400 a500 a1000 a4500 a5500 rtx2050 mx570"),
    _documented(8, 7, "orin orinnx orinnano"),
    # Ada Lovelace
    _documented(8, 9, "l4 l40 l40s"),
    _documented(8, 9, "rtx2000ada rtx4000ada rtx4000sffada rtx4500ada rtx5000ada rtx6000ada"),
    _documented(8, 9, "rtx4050 rtx4060 rtx4060ti rtx4070 rtx4070super rtx4070ti rtx4070tisuper"),
    _documented(8, 9, "rtx4080 rtx4080super rtx4090"),
    _inferred(8, 9, "l2 l20 l40g rtx500ada rtx1000ada rtx3000ada rtx3500ada rtx5880ada rtx4090d"),
    # Hopper
    _documented(9, 0, "h100 h200 gh200"),
    _inferred(9, 0, "h20 h800 h100nvl h200nvl"),
    # Blackwell. CUDA 12 called the capability of Thor 10.1; CUDA 13 renamed it 11.0.
    _documented(10, 0, "b200 gb200"),
    _inferred(10, 0, "b100"),
    _documented(10, 3, "b300 gb300"),
    _documented(11, 0, "thor t4000 t5000"),
    _documented(12, 0, "rtxpro2000 rtxpro4000 rtxpro4000sff rtxpro4500 rtxpro5000 rtxpro6000"),
    _documented(12, 0, "rtx5050 rtx5060 rtx5060ti rtx5070 rtx5070ti rtx5080 rtx5090"),
    _inferred(12, 0, "rtxpro500 rtxpro1000 rtxpro3000 rtx5090d"),
    _documented(12, 1, "gb10 dgxspark"),
)

NAMES: Mapping[str, ComputeCapability] = MappingProxyType(
    {name: row.capability for row in _TABLE for name in row.names.split()}
)
"""Every known product, by its key: lower case, without spaces, dashes and underscores."""

SEVERAL: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "rtx3000": ("quadrortx3000", "rtx3000ada", "rtxpro3000"),
        "rtx4000": ("quadrortx4000", "rtx4000ada", "rtxpro4000"),
        "rtx5000": ("quadrortx5000", "rtx5000ada", "rtxpro5000"),
        "rtx6000": ("quadrortx6000", "rtx6000ada", "rtxpro6000"),
        "titanx": ("gtxtitanx", "titanxpascal"),
    }
)
"""Names that NVIDIA gave to several chips, and the full names that tell them apart."""

_MEMORY_SIZE = re.compile(r"(?<=[\s_-])[0-9]+\s?gb?(?=$|[\s_-])", re.ASCII)
_IGNORED = re.compile(r"[\s_()-]+")
_BRANDS = re.compile(r"nvidia|geforce|tesla|quadro|jetson|drive|agx|dgx|hgx|rtx(?=a[0-9])")
# The mobile GTX 700 and 900 have other chips than the cards of that number.
_VARIANTS = re.compile(
    r"(?:(?<!gtx[79]..)(?:laptop|mobile|maxq)|gpu|generation|blackwell|(?:server|workstation)(?:edition)?"
    r"|sxm[2-6]?|pcie|nvl[0-9]*|hbm[23]e?|superchip)$"
)


def key_of(name: str) -> str:
    """Lower the case and drop spaces, dashes, underscores and parentheses."""
    return _IGNORED.sub("", name.lower())


def lookup(name: str) -> ComputeCapability | None:
    """Find the compute capability of a product, or None.

    Brands (``GeForce``, ``Tesla``) and variants of one chip (``Laptop GPU``, ``SXM4``, ``80GB``) may
    be there or not, so the names that ``nvidia-smi`` prints work too.
    """
    key = key_of(name)
    if key not in NAMES:  # where it is, as a-10g, what looks like a memory size is none
        key = key_of(_MEMORY_SIZE.sub("", name.lower()))
    while key and key not in NAMES:
        shorter = _VARIANTS.sub("", key)
        if shorter == key:
            brand = _BRANDS.match(key)
            if brand is None:
                return None
            shorter = key[brand.end() :]
        key = shorter
    return NAMES.get(key)


def several(name: str) -> tuple[str, ...]:
    """Return the keys of the products that share ``name``, none where it is the name of at most one."""
    key = key_of(name)
    while key and key not in SEVERAL:
        brand = _BRANDS.match(key)
        if brand is None:
            return ()
        key = key[brand.end() :]
    return SEVERAL.get(key, ())


def resembling(name: str, limit: int = 5) -> tuple[str, ...]:
    """Return the keys of known products that someone who wrote ``name`` may have meant."""
    from difflib import get_close_matches  # costs milliseconds, and only errors need it

    key = key_of(name)
    if not key:
        return ()
    containing = [known for known in NAMES if key in known]
    close = get_close_matches(key, NAMES, n=limit, cutoff=0.75)
    return tuple(dict.fromkeys([*containing, *close]))[:limit]
