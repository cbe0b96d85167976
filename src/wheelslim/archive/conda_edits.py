"""What the rewritten package will hold: every edit, settled before the first byte is written."""

from __future__ import annotations

import hashlib
import posixpath
import tarfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wheelslim.archive.artifact import MemberType, check_stamp_place
from wheelslim.archive.conda import STAMP, is_info
from wheelslim.archive.conda_name import INDEX_JSON, index_with_build
from wheelslim.archive.paths_json import PATHS_JSON, Content
from wheelslim.archive.record import Record, RecordEntry
from wheelslim.archive.tar_header import parse_info, plain_name
from wheelslim.errors import ArchiveError, Place, WheelslimError
from wheelslim.rewriter import ChangedMember, RewriteResult

if TYPE_CHECKING:
    from wheelslim.archive.conda import CondaArtifact
    from wheelslim.archive.conda_name import CondaName
    from wheelslim.archive.conda_survey import Slimmed, Survey
    from wheelslim.archive.paths_json import PathsJson

FILES = "info/files"
_SHOWN = 5


@dataclass
class Edits:
    """New contents by name (``slimmed``, ``texts``), the names left out, and the added stamp."""

    slimmed: dict[str, Slimmed]
    texts: dict[str, bytes] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)
    notices: list[str] = field(default_factory=list)
    stamp_header: bytes | None = None

    @property
    def anything(self) -> bool:
        """Whether the result differs from the package at all."""
        return bool(self.slimmed or self.texts or self.dropped)

    @property
    def new_sizes(self) -> dict[str, int]:
        """Sizes in bytes of everything that gets a new content."""
        sizes = {name: slimmed.content.size for name, slimmed in self.slimmed.items()}
        return sizes | {name: len(text) for name, text in self.texts.items()}

    def touches(self, survey: Survey, component: str) -> bool:
        """Whether a member of the tar ``component`` changes, or the stamp goes into it."""
        if component == "info" and self.stamp_header is not None:
            return True
        return any(
            member.name in self.slimmed or member.name in self.texts or member.name in self.dropped
            for member in survey.members
            if member.component == component
        )


class Editor:
    """Derives the edits from the survey; nothing is read or written but metadata."""

    def __init__(self, artifact: CondaArtifact, survey: Survey, paths: PathsJson) -> None:
        """Edit ``artifact``, whose paths.json is ``paths``."""
        self._artifact = artifact
        self._survey = survey
        self._paths = paths
        self._edits = Edits(slimmed=dict(survey.slimmed), notices=list(survey.notices))
        self._payload = {name: found for name, found in survey.contents.items() if not is_info(name)}

    def settle(self, force: bool, name: CondaName) -> Edits:
        """Return all edits but the stamp, which needs their sum (``result``).

        Raises:
            ArchiveError: paths.json disagrees with the package, and ``force`` is false.
        """
        self._keep_linked_placeholders()
        self._drop()
        mended = self._mend(force)
        changed = self._changed()
        for record in list(self._survey.texts):
            self._edit_record(record, changed)
        paths = mended.updated(changed, self._edits.dropped)
        if paths.document != self._paths.document:
            self._edits.texts[PATHS_JSON] = paths.write()
        self._edit_files()
        index = self._artifact.read(INDEX_JSON)
        renamed = index_with_build(index, name.build)
        if renamed != index:
            self._edits.texts[INDEX_JSON] = renamed
        return self._edits

    def result(self) -> RewriteResult:
        """Return the account of the edits; metadata of ``info/`` is not installed, so not counted."""
        files = {
            member.name: self._survey.contents[member.name].size
            for member in self._survey.members
            if member.type is MemberType.FILE and not is_info(member.name)
        }
        after = sum(self._size_after(name, size) for name, size in files.items())
        changed = tuple(
            ChangedMember(
                name=name,
                size_before=self._survey.contents[name].size,
                size_after=slimmed.content.size,
                sha256_before=self._survey.contents[name].sha256,
                sha256_after=slimmed.content.sha256,
            )
            for name, slimmed in self._edits.slimmed.items()
        )
        dropped = tuple(member.name for member in self._survey.members if member.name in self._edits.dropped)
        return RewriteResult(changed, dropped, sum(files.values()), after, tuple(self._edits.notices))

    def stamp(self, content: bytes) -> None:
        """Put ``info/wheelslim.json`` into the package, in place of the one that it has.

        Its header is that of ``info/index.json`` but for name and size, so that the same package
        gives the same bytes.
        """
        check_stamp_place(STAMP, ((member.name, member.type) for member in self._survey.members))
        self._edits.texts[STAMP] = content
        if STAMP not in self._survey.contents:
            like = parse_info(self._survey.raw_headers[INDEX_JSON])
            info = tarfile.TarInfo(STAMP)
            info.size, info.mtime = len(content), int(like.mtime)
            info.mode, info.uid, info.gid = like.mode, like.uid, like.gid
            info.uname, info.gname = like.uname, like.gname
            self._edits.stamp_header = info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")

    def _size_after(self, name: str, size: int) -> int:
        if name in self._edits.dropped:
            return 0
        if name in self._edits.slimmed:
            return self._edits.slimmed[name].content.size
        return len(self._edits.texts[name]) if name in self._edits.texts else size

    def _keep_linked_placeholders(self) -> None:
        """Leave a file alone whose hard link has a build prefix that was not counted in the file."""
        for name, target in self._survey.hard_links.items():
            prefix = self._paths.placeholder(name)
            uncounted = prefix is not None and prefix != self._paths.placeholder(target)
            if uncounted and self._edits.slimmed.pop(target, None) is not None:
                self._edits.notices.append(
                    f"{target}: kept as it is: paths.json has another build prefix for its hard link {name}"
                )

    def _drop(self) -> None:
        wishes = self._survey.drop_wishes
        kept_links = {target: name for name, target in self._survey.hard_links.items() if name not in wishes}
        for name in wishes:
            if name in kept_links:
                self._edits.notices.append(f"{name}: kept, since {kept_links[name]} is a hard link to it")
            else:
                self._edits.dropped.add(name)
        for name, content in self._payload.items():
            if content.type is MemberType.SYMLINK and self._survey.names.follow(name) in self._edits.dropped:
                self._edits.dropped.add(name)

    def _mend(self, force: bool) -> PathsJson:
        found = list(self._paths.disagreements(self._payload))
        if not found:
            return self._paths
        shown = "; ".join(str(item) for item in found[:_SHOWN])
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        if not force:
            raise ArchiveError(
                "paths.json disagrees with the package",
                place=Place(member=PATHS_JSON),
                found=shown + more,
                hint="Give --force to write a paths.json that agrees, if you trust the files",
            )
        self._edits.notices.append(f"{PATHS_JSON}: mended where it disagreed with the package: {shown}{more}")
        return self._paths.repaired(self._payload)

    def _changed(self) -> dict[str, tuple[Content, Content]]:
        """Return (before, after) of each name whose content changes: files, hard links, symbolic links."""
        files = {
            name: (self._survey.contents[name], slimmed.content)
            for name, slimmed in self._edits.slimmed.items()
        }
        links = {name: files[target] for name, target in self._survey.hard_links.items() if target in files}
        named = files | links
        symlinks = {}
        for name, content in self._payload.items():
            if content.type is MemberType.SYMLINK:
                target = self._survey.names.follow(name)
                if target in named:
                    symlinks[name] = named[target]
        return named | symlinks

    def _edit_record(self, path: str, changed: dict[str, tuple[Content, Content]]) -> None:
        site_packages = posixpath.dirname(posixpath.dirname(path))
        text = self._survey.texts[path]
        try:
            record = Record.parse(text, posixpath.relpath(path, site_packages or "."))
        except WheelslimError as error:
            self._edits.notices.append(f"{path}: left as it is, since it does not parse: {error.what}")
            return
        rows: dict[str, RecordEntry] = {}
        dropped = set()
        for row in record.entries:
            name = posixpath.normpath(posixpath.join(site_packages, row))
            if name in self._edits.dropped:
                dropped.add(row)
            elif name in changed and record.entries[row].digest is not None:
                after = changed[name][1]
                rows[row] = RecordEntry.of_sha256(row, after.sha256, after.size)
        if not rows and not dropped:
            return
        new = record.rewritten(rows, dropped)
        before = self._survey.contents[path]
        self._edits.texts[path] = new
        changed[path] = (before, _content(new))
        for name, target in self._survey.hard_links.items():
            if target == path:
                changed[name] = changed[path]

    def _edit_files(self) -> None:
        """Keep ``info/files``, which lists what is installed, true: without the dropped names."""
        if FILES not in self._survey.contents or not self._edits.dropped:
            return
        text = self._artifact.read(FILES)
        lines = text.decode("utf-8", "surrogateescape").splitlines(keepends=True)
        gone = self._edits.dropped
        kept = [line for line in lines if plain_name(line.rstrip("\r\n")) not in gone]
        new = "".join(kept).encode("utf-8", "surrogateescape")
        if new != text:
            self._edits.texts[FILES] = new


def _content(data: bytes) -> Content:
    return Content(MemberType.FILE, hashlib.sha256(data).hexdigest(), len(data))
