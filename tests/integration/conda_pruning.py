"""Prune a conda package as the command line does, without the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelslim.archive.conda import CondaArtifact
from wheelslim.archive.conda_rewrite import CondaOptions, conda_output_name, rewrite_conda
from wheelslim.plan import Request
from wheelslim.slim_rewriter import SlimRewriter
from wheelslim.targets import parse_targets

if TYPE_CHECKING:
    from pathlib import Path

    from wheelslim.rewriter import RewriteResult

QUICK = CondaOptions(compression_level=3)


def prune(
    package: Path, folder: Path, words: str, options: CondaOptions = QUICK
) -> tuple[Path, RewriteResult]:
    """Write the pruned package into ``folder``, under the name that clients expect."""
    folder.mkdir(exist_ok=True)
    temporary = folder / "out.tmp"
    with CondaArtifact(package) as artifact:
        name = conda_output_name(artifact, options.build_suffix, options.format)
        rewriter = SlimRewriter(Request(parse_targets(words)))
        result = rewrite_conda(artifact, temporary, rewriter, options)
    return temporary.rename(folder / name), result
