"""The story of one artifact, from its path to its slimmed copy and the report.

Open it, plan each library (``slim``), write what changed beside what did not (``archive``), prove
the promises on what was written (``verify``), and only then give the output its name.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from wheelslim.archive.artifact import ArtifactKind, MemberType
from wheelslim.archive.opener import open_artifact
from wheelslim.archive.output import atomic_output, flush
from wheelslim.container_rewrite import ContainerRewriter
from wheelslim.edition import PruneOptions, edition_of
from wheelslim.errors import UsageError, WheelslimError
from wheelslim.file_digest import FileDigest
from wheelslim.groups.plan import plan_drops
from wheelslim.loose.plan import plan_loose
from wheelslim.pieces import total_size
from wheelslim.plan import Planner
from wheelslim.proof.library import NOTHING_PROVED
from wheelslim.report.model import PruneReport
from wheelslim.request_notices import growth_notice
from wheelslim.rewriter import RewriteResult
from wheelslim.slim_rewriter import SlimRewriter
from wheelslim.spool import SpoolFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from wheelslim.archive.artifact import Artifact

__all__ = ["PruneOptions", "prune"]


class _NothingToPruneError(Exception):
    """Ends a run whose output would equal its input, so that no output appears."""


def prune(path: Path, options: PruneOptions, progress: Callable[[int], None] | None = None) -> PruneReport:
    """Slim one artifact; ``progress`` is called with numbers of input bytes done.

    Raises:
        WheelslimError: whatever is wrong, with its place; no output exists then, and the input is
            as it was.
    """
    try:
        with FileDigest(path) as digest:
            if not options.dry_run and path.is_file():  # Reading a pipe might never end.
                digest.start()  # Early: one core is idle while the other reads headers.
            try:
                with open_artifact(path, options.scratch_dir) as artifact:
                    return _prune_open(artifact, options, digest, progress)
            except WheelslimError:
                digest.check_unchanged()  # What seems broken may only be half written.
                raise
    except WheelslimError as error:
        raise error.at(artifact=str(path)) from error.__cause__


def _prune_open(
    artifact: Artifact, options: PruneOptions, digest: FileDigest, progress: Callable[[int], None] | None
) -> PruneReport:
    beside = options.output_dir if options.output_dir.is_dir() else None
    with SpoolFile(options.scratch_dir or beside) as spool:
        storage = ContainerRewriter(options.request, spool, options.recompress)
        return _prune_with(artifact, options, storage, digest, progress)


def _prune_with(
    artifact: Artifact,
    options: PruneOptions,
    storage: ContainerRewriter,
    digest: FileDigest,
    progress: Callable[[int], None] | None,
) -> PruneReport:
    edition = edition_of(artifact, options)
    drops = plan_drops(artifact, options.drop)
    loose = plan_loose(artifact, Planner(options.request))
    rewriter = SlimRewriter(
        options.request,
        options.library,
        options.verify,
        dropped=drops.names | loose.names,
        loose=loose,
        kernels=options.kernels,
        storage=storage,
        alone=artifact.kind is ArtifactKind.FILE,
        source_sha256=digest.hexdigest,
    )
    rewriter.notices.extend((*drops.notices, *loose.notices))
    if options.dry_run:
        result = _plan_only(artifact, rewriter)
        rewriter.check_supported()
        return _report(artifact, options, rewriter, result, None)
    final = options.output_dir / edition.name
    if final.resolve() == artifact.path.resolve():
        raise UsageError("the output would replace the input", hint="Give another --output-dir")
    if final.resolve() in options.keep:
        raise UsageError(
            "the output would replace another input, or the output of one",
            found=str(final),
            hint="Give this one to a command of its own, with another --output-dir",
        )
    try:
        with atomic_output(final, options.force) as temporary, ThreadPoolExecutor(1, "flush") as beside:
            result = edition.write(temporary, rewriter, progress)
            rewriter.check_supported()
            if not options.force and not _is_smaller(artifact, temporary, result):
                digest.check_unchanged()
                raise _NothingToPruneError
            flushed = beside.submit(flush, temporary)
            if options.verify:
                edition.check(temporary, result)
            flushed.result()
            digest.check_unchanged()
    except _NothingToPruneError:
        why = "nothing to prune" if not result.changed else "the result would be no smaller"
        rewriter.notices.append(f"{why}: no output was written (--force writes one)")
        same = replace(result, installed_after=result.installed_before)
        return _report(artifact, options, rewriter, same, None)
    return _report(artifact, options, rewriter, result, final)


def _is_smaller(artifact: Artifact, written: Path, result: RewriteResult) -> bool:
    """Whether something is smaller, as a file or installed; what says that it is slimmed takes room, too."""
    if not result.changed and not result.dropped:
        return False
    return result.installed_after < result.installed_before or written.stat().st_size < artifact.size


def _plan_only(artifact: Artifact, rewriter: SlimRewriter) -> RewriteResult:
    """Plan every library and write nothing."""
    before = after = 0
    dropped = []
    for member, source in artifact.walk(
        lambda member, head: member.type is MemberType.FILE and rewriter.wants(member.name, member.size, head)
    ):
        before += member.size
        if rewriter.drops(member.name):
            dropped.append(member.name)
            continue
        after += member.size
        pieces = None if source is None else rewriter.plan(member.name, source)
        if pieces is not None:
            after += total_size(pieces) - member.size
    return RewriteResult((), tuple(dropped), before, after)


def _report(
    artifact: Artifact,
    options: PruneOptions,
    rewriter: SlimRewriter,
    result: RewriteResult,
    final: Path | None,
) -> PruneReport:
    request = options.request
    size_after = None if final is None else final.stat().st_size
    grown = growth_notice(artifact.size, size_after) if size_after is not None else ()
    return PruneReport(
        artifact=str(artifact.path),
        output=None if final is None else str(final),
        targets=tuple(target.name for target in request.targets),
        size_before=artifact.size,
        size_after=size_after,
        installed_before=result.installed_before,
        installed_after=result.installed_after,
        libraries=tuple(rewriter.reports[name] for name in sorted(rewriter.reports)),
        dropped=result.dropped,
        notices=(*result.notices, *rewriter.notices, *rewriter.outcome_notices, *grown),
        ptx=request.ptx.value,
        exact=request.exact,
        proof=sum(rewriter.proofs.values(), NOTHING_PROVED) if rewriter.proofs else None,
    )
