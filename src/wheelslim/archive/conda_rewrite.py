"""A conda package rewritten: survey, settle, write, check.

The package is decompressed twice (survey, write) and the result once (check). One library at a time
lies in scratch files, twice while it is confirmed, and beside it a quick copy of a ``.tar.bz2``.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wheelslim.archive.artifact import ArtifactKind
from wheelslim.archive.compressed import DEFAULT_LEVEL, MAX_LEVEL
from wheelslim.archive.conda_check import check_written
from wheelslim.archive.conda_edits import Editor
from wheelslim.archive.conda_output import Compression, CondaWriter
from wheelslim.archive.conda_survey import Surveyor
from wheelslim.archive.conda_write import CondaRewrite
from wheelslim.archive.paths_json import PATHS_JSON, PathsJson
from wheelslim.archive.progress import Progress
from wheelslim.archive.scratch import Scratch
from wheelslim.archive.storage import storage_errors
from wheelslim.archive.workers import available_cpus
from wheelslim.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from wheelslim.archive.conda import CondaArtifact
    from wheelslim.rewriter import Rewriter, RewriteResult


@dataclass(frozen=True)
class CondaOptions:
    """How a conda package is rewritten.

    ``format`` None keeps that of the package. ``compression_level`` is zstd's (1 to 22); ``jobs``
    its threads, at most 8, each of which takes about 150 MB at level 19. ``force`` mends a paths.json that
    disagrees with the files. ``build_suffix`` is added to the build string, in ``info/index.json``
    and in the names. ``progress`` is called, from any thread, with numbers of bytes that add up to
    the size of the package. ``settled`` is called when every member is planned, before the first byte
    is compressed; what it raises ends the run.
    """

    format: ArtifactKind | None = None
    compression_level: int = DEFAULT_LEVEL
    jobs: int = field(default_factory=available_cpus)
    scratch_dir: Path | None = None
    force: bool = False
    build_suffix: str | None = None
    progress: Callable[[int], None] | None = field(default=None, compare=False)
    settled: Callable[[], None] | None = field(default=None, compare=False)


def conda_output_name(
    artifact: CondaArtifact, build_suffix: str | None = None, kind: ArtifactKind | None = None
) -> str:
    """Return the file name that clients expect the rewritten package to have.

    It comes from ``info/index.json``, whatever the file is called now.

    Raises:
        UsageError: a build string cannot hold the suffix.
    """
    return artifact.name.with_suffix(build_suffix).file_name(kind or artifact.kind)


def rewrite_conda(
    artifact: CondaArtifact, destination: Path, rewriter: Rewriter, options: CondaOptions
) -> RewriteResult:
    """Write the rewritten package to ``destination``, a temporary file that the caller owns.

    Where nothing changes, and format and name stay, the file is copied as it is, without a stamp.

    Raises:
        ArchiveError: the package is broken or hostile, or paths.json disagrees with it.
        VerifyError: the result does not keep a promise.
        UsageError: an option makes no sense.
        StorageError: the operating system refuses.
    """
    if not 1 <= options.compression_level <= MAX_LEVEL:
        raise UsageError(
            "the compression level does not exist",
            expected=f"1 to {MAX_LEVEL}",
            found=str(options.compression_level),
        )
    name = artifact.name.with_suffix(options.build_suffix)
    kind = options.format or artifact.kind
    if kind not in (ArtifactKind.CONDA, ArtifactKind.TAR_BZ2):
        raise UsageError("a conda package cannot be written in this format", found=kind.value)
    directory = options.scratch_dir or destination.parent
    progress = Progress(artifact.size, options.progress)
    with artifact.located(), Scratch(directory) as scratch:
        paths = PathsJson.parse(artifact.read(PATHS_JSON))
        surveyor = Surveyor(paths, rewriter, scratch, directory)
        survey = surveyor.run(artifact, progress.survey_step)
        editor = Editor(artifact, survey, paths)
        edits = editor.settle(options.force, name)
        result = editor.result()
        if options.settled is not None:
            options.settled()
        if not edits.anything and kind is artifact.kind:
            _copy_file(artifact, destination, progress)
            progress.finish()
            return result
        if edits.anything:
            editor.stamp(rewriter.stamp(result))
        rewrite = CondaRewrite(
            artifact, survey, edits, scratch=scratch, directory=directory, progress=progress
        )
        with storage_errors(destination):
            if kind is ArtifactKind.TAR_BZ2:
                rewrite.write_tar_bz2(destination)
            else:
                compression = Compression(options.compression_level, options.jobs)
                writer = CondaWriter(destination, name.stem, compression, artifact.container)
                with closing(writer):
                    if artifact.kind is ArtifactKind.CONDA:
                        rewrite.write_conda(writer)
                    else:
                        rewrite.split(writer)
    check_written(destination, survey, edits, name.stem)
    progress.finish()
    return result


def _copy_file(artifact: CondaArtifact, destination: Path, progress: Progress) -> None:
    with storage_errors(destination), destination.open("wb") as out:
        for block in artifact.container.source.blocks():
            out.write(block)
            progress.write_step(len(block))
