"""Whether a tree supports the targets at all, asked before anything in it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelslim.environment.notices import support_notices
from wheelslim.environment.replacement import opened
from wheelslim.errors import WheelslimError
from wheelslim.slim_rewriter import SlimRewriter

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from wheelslim.environment.listing import Candidate


def survey_support(root: Path, rewriter: SlimRewriter, candidates: Sequence[Candidate]) -> tuple[str, ...]:
    """Plan every library as the driver's rule alone has it; returns sentences about those without support.

    Raises:
        TargetNeverSupportedError: no library runs on one of the targets.
    """
    survey = SlimRewriter(rewriter.request, loose=rewriter.loose)
    for candidate in candidates:
        try:
            with opened(root / candidate.name) as original:
                survey.plan(candidate.name, original.source)
        except WheelslimError:
            continue  # The real run meets it again, and names it.
    survey.check_supported()
    return tuple(support_notices(survey.reports.values(), rewriter.request))
