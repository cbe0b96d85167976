"""A verification as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelslim.report.table import Align, Table
from wheelslim.units import count_text, printable

if TYPE_CHECKING:
    from wheelslim.verification import Verification


def render_verification_text(
    verification: Verification, console_width: int | None, *, color: bool = False
) -> str:
    """Return what ``verify`` prints: each promise with its count, then the place of each that is broken."""
    targets = ", ".join(verification.targets) or "no target"
    told = " (from wheelslim.json)" if verification.from_stamp and verification.targets else ""
    table = Table((("", Align.LEFT), ("promise", Align.LEFT), ("compared", Align.WRAP)))
    for finding in verification.findings:
        mark = "ok" if finding.failure is None else "BROKEN"
        table.rows.append(
            (mark, finding.promise.value, finding.what if finding.failure is None else "see below")
        )
    parts = [
        printable(f"{verification.original}\n→ {verification.slimmed}\nfor {targets}{told}\n"),
        table.render(console_width, color=color),
        printable("".join(f"note: {notice}\n" for notice in verification.notices)),
    ]
    broken = [finding for finding in verification.findings if finding.failure is not None]
    parts.append(printable("".join(f"{finding.promise.value}: {finding.failure}\n" for finding in broken)))
    parts.append(
        f"broken: {len(broken)} of {count_text(len(verification.findings), 'promise')}\n"
        if broken
        else "verified\n"
    )
    return "\n".join(part for part in parts if part)
