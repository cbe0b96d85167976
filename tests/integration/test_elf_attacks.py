"""Every row of the table of attacks on libraries: what it becomes, how soon, and that it loads as before."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import pytest

from integration.pruning import prune
from integration.test_odd_libraries import notes
from judges.loader import LoadError
from reliability.elf_attacks import CUT, ELF_ATTACKS, IN_PLACE, LEFT, REFUSED, ElfAttack
from wheelslim.errors import ElfFormatError
from wheelslim.slim import Method

if TYPE_CHECKING:
    from pathlib import Path

    from judges.loader import Loader

SECONDS = 10
"""It takes 2 at most on a machine with nothing else to do."""
METHODS = {LEFT: Method.NONE, IN_PLACE: Method.IN_PLACE, CUT: Method.CUT}


@pytest.mark.parametrize("attack", ELF_ATTACKS, ids=lambda attack: f"{attack.group}: {attack.name}")
def test_attack(attack: ElfAttack, loader: Loader, tmp_path: Path) -> None:
    odd, out = tmp_path / "odd.so", tmp_path / "pruned.so"
    odd.write_bytes(attack.build())
    start = time.monotonic()
    if attack.becomes == REFUSED:
        with pytest.raises(ElfFormatError, match=attack.reason):
            prune(odd, out, "sm_86")
        return
    pruned = prune(odd, out, "sm_86")  # Its proof holds, too.
    assert time.monotonic() - start < SECONDS
    assert pruned.account.method is METHODS[attack.becomes]
    assert re.search(attack.reason, " ".join((*pruned.account.notes, *notes(odd))))
    before = outcome(loader, odd)
    if before is not None:
        assert outcome(loader, out) == before


def outcome(loader: Loader, path: Path) -> object:
    """What the library answers and registers, what the spy finds fault with; None where it does not load."""
    try:
        seen = loader.load(path, "answer")
    except LoadError:
        return None
    except AssertionError as error:
        return str(error)
    return seen.values, [one.version for one in seen.registered]
