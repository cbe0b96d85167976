"""The build tag of a slimmed wheel."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from wheelslim.targets import build_tag

if TYPE_CHECKING:
    from wheelslim.plan import Request

_OURS = re.compile(r"(?:_(?:sm|compute)[0-9]+[af]?(?:ptx)?)+$")
_NUMBER = re.compile(r"[0-9]+")


def slim_build_tag(old: str | None, request: Request, slimmed: bool) -> str:
    """Return the build tag that names the request's targets: ``0_sm80_sm86``.

    Installers prefer the higher build tag, first by its leading number, then by the rest as text,
    and any tag over none. An old tag therefore stays in front (``1`` becomes ``1_sm86``); where the
    wheel was ``slimmed`` before, the targets of that run go.
    """
    if old is not None and slimmed:
        old = _OURS.sub("", old)
    targets = build_tag(request.targets)
    if not old or old == "0":
        return targets
    return old + targets.removeprefix("0")
