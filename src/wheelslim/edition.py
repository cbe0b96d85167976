"""The slimmed edition of an artifact: its file name, how it is written, how its container is checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from wheelslim.archive.artifact import ArtifactKind
from wheelslim.archive.deflate import Compression
from wheelslim.contents import ContentKind, content_kind
from wheelslim.errors import ArtifactError, UsageError
from wheelslim.groups.rules import DropRequest
from wheelslim.kernels.rules import KernelRules
from wheelslim.output_name import slim_build_tag
from wheelslim.slim import LibraryOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from wheelslim.archive.artifact import Artifact, Member
    from wheelslim.archive.conda import CondaArtifact
    from wheelslim.archive.file_artifact import FileArtifact
    from wheelslim.archive.wheel import WheelArtifact
    from wheelslim.plan import Request
    from wheelslim.rewriter import RewriteResult
    from wheelslim.slim_rewriter import SlimRewriter

    Progress = Callable[[int], None]

_CODE = frozenset({ContentKind.LIBRARY, ContentKind.FATBIN, ContentKind.CUBIN, ContentKind.STATIC_LIBRARY})


@dataclass(frozen=True)
class PruneOptions:
    """How to prune; ``request`` says for which targets.

    ``kernels`` are rules for what goes by name; ``recompress`` stores device code as zstd.
    ``scratch_dir`` is the output's directory unless given; ``jobs`` the number of cores.
    ``build_tag`` and ``compression`` are for wheels; ``conda_format`` (None keeps it),
    ``compression_level`` (zstd's, None is conda's own) and ``build_suffix`` for conda packages.
    ``keep`` are resolved paths that no output may replace, with ``force`` neither.
    """

    request: Request
    library: LibraryOptions = field(default_factory=LibraryOptions)
    drop: DropRequest = field(default_factory=DropRequest)
    kernels: KernelRules = field(default_factory=KernelRules)
    recompress: bool = False
    output_dir: Path = Path("slim")
    force: bool = False
    dry_run: bool = False
    verify: bool = True
    check_input: bool = False
    jobs: int | None = None
    scratch_dir: Path | None = None
    build_tag: bool = True
    compression: Compression = Compression.DEFAULT
    conda_format: ArtifactKind | None = None
    compression_level: int | None = None
    build_suffix: str | None = None
    keep: frozenset[Path] = frozenset()


class Edition(Protocol):
    """What the pipeline asks of each kind of artifact."""

    @property
    def name(self) -> str:
        """The file name of the result."""
        ...

    def write(self, temporary: Path, rewriter: SlimRewriter, progress: Progress | None) -> RewriteResult:
        """Write the result to the existing file ``temporary``."""
        ...

    def check(self, temporary: Path, result: RewriteResult) -> None:
        """Raise VerifyError unless the written container differs only where it should."""
        ...


def edition_of(artifact: Artifact, options: PruneOptions) -> Edition:
    """Choose by kind.

    Raises:
        UsageError: a directory, or options that the kind does not have.
    """
    if artifact.kind is ArtifactKind.TREE:
        raise UsageError("this is a directory", hint="wheelslim env slims directories in place")
    is_conda = artifact.kind in (ArtifactKind.CONDA, ArtifactKind.TAR_BZ2)
    if not is_conda and (options.conda_format or options.build_suffix):
        raise UsageError("--format and --build-suffix are for conda packages", found=artifact.kind.value)
    if artifact.kind is ArtifactKind.WHEEL:
        return WheelEdition(artifact, options)  # type: ignore[arg-type]
    if is_conda:
        return CondaEdition(artifact, options)  # type: ignore[arg-type]
    _check_kind(artifact)
    return FileEdition(artifact)  # type: ignore[arg-type]


def _check_kind(artifact: Artifact) -> None:
    """Refuse a single file that holds no code at all: a wrong path would look like success.

    Raises:
        ArtifactError: it is neither a library nor loose device code.
    """
    kinds: list[ContentKind] = []

    def note(member: Member, head: bytes) -> bool:
        kinds.append(content_kind(member.name, head))
        return False

    list(artifact.walk(note))
    if not artifact.path.suffix == ".ptx" and not set(kinds) & _CODE:
        raise ArtifactError(
            "this is no wheel, conda package, library or device code",
            expected="for example a .whl, a .conda or a .so",
        )


@dataclass(frozen=True)
class WheelEdition:
    """A wheel; its build tag names the targets, so that installers prefer it and pins still match."""

    artifact: WheelArtifact
    options: PruneOptions

    @property
    def build_tag(self) -> str | None:
        """The tag, or None where the name stays."""
        if not self.options.build_tag:
            return None
        slimmed = self.artifact.has(self.artifact.stamp_name)
        return slim_build_tag(self.artifact.name.build, self.options.request, slimmed)

    @property
    def name(self) -> str:
        """The wheel's proper name, whatever the file is called now."""
        tag = self.build_tag
        return str(self.artifact.name if tag is None else self.artifact.name.with_build(tag))

    def write(self, temporary: Path, rewriter: SlimRewriter, progress: Progress | None) -> RewriteResult:
        """See ``Edition.write``."""
        from wheelslim.archive.wheel_rewrite import WheelOptions, rewrite_wheel
        from wheelslim.archive.workers import available_cpus

        options = WheelOptions(
            build_tag=self.build_tag,
            compression=self.options.compression,
            jobs=self.options.jobs or available_cpus(),
            scratch_dir=self.options.scratch_dir,
            check_input=self.options.check_input,
            confirm=self.options.verify,
            progress=progress,
        )
        return rewrite_wheel(self.artifact, temporary, rewriter, options)

    def check(self, temporary: Path, result: RewriteResult) -> None:
        """See ``Edition.check``."""
        from wheelslim.archive.wheel_check import verify_wheel_container

        changed = {change.name for change in result.changed}
        dropped = set(result.dropped)
        added = {self.artifact.stamp_name}
        verify_wheel_container(self.artifact, temporary, changed, dropped, added, read_back=result.changed)


@dataclass(frozen=True)
class CondaEdition:
    """A conda package; writing checks it too, since one stream serves both."""

    artifact: CondaArtifact
    options: PruneOptions

    @property
    def name(self) -> str:
        """The name that clients expect, from ``info/index.json``."""
        from wheelslim.archive.conda_rewrite import conda_output_name

        return conda_output_name(self.artifact, self.options.build_suffix, self.options.conda_format)

    def write(self, temporary: Path, rewriter: SlimRewriter, progress: Progress | None) -> RewriteResult:
        """See ``Edition.write``."""
        from wheelslim.archive.compressed import DEFAULT_LEVEL
        from wheelslim.archive.conda_rewrite import CondaOptions, rewrite_conda
        from wheelslim.archive.workers import available_cpus

        level = self.options.compression_level
        options = CondaOptions(
            format=self.options.conda_format,
            compression_level=DEFAULT_LEVEL if level is None else level,
            jobs=self.options.jobs or available_cpus(),
            scratch_dir=self.options.scratch_dir,
            force=self.options.force,
            build_suffix=self.options.build_suffix,
            progress=progress,
            settled=rewriter.check_supported,  # Compressing takes minutes: not for nothing.
        )
        return rewrite_conda(self.artifact, temporary, rewriter, options)

    def check(self, temporary: Path, result: RewriteResult) -> None:
        """See ``Edition.check``; done while writing."""


@dataclass(frozen=True)
class FileEdition:
    """A single library, under its own name."""

    artifact: FileArtifact

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.artifact.path.name

    def write(self, temporary: Path, rewriter: SlimRewriter, progress: Progress | None) -> RewriteResult:
        """See ``Edition.write``."""
        from wheelslim.archive.single_file import rewrite_file

        result = rewrite_file(self.artifact.path, temporary, rewriter)
        if progress is not None:
            progress(self.artifact.size)
        return result

    def check(self, temporary: Path, result: RewriteResult) -> None:
        """See ``Edition.check``; a file has no container."""
