"""The last pass over a rewritten conda package: what lies on disk is compared with the survey."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from wheelslim.archive.artifact import MemberType
from wheelslim.archive.conda import STAMP, CondaArtifact, is_info
from wheelslim.archive.conda_survey import header_digest
from wheelslim.archive.paths_json import PATHS_JSON, Content, PathsJson
from wheelslim.errors import Place, VerifyError

if TYPE_CHECKING:
    from pathlib import Path

    from wheelslim.archive.conda_edits import Edits
    from wheelslim.archive.conda_survey import Survey
    from wheelslim.archive.tar_header import TarHeader
    from wheelslim.archive.tar_stream import TarReader


def check_written(written: Path, survey: Survey, edits: Edits, stem: str) -> None:
    """Read the finished package whole and hold it against what was surveyed and settled.

    Every member has to be there, in order, with its header as it was but for the size, and with the
    content that was settled; paths.json has to agree with all of it.

    Raises:
        VerifyError: something differs.
        ArchiveError: the package does not parse.
    """
    expected = expected_contents(survey, edits)
    headers = {member.name: member.header for member in survey.members}
    found: dict[str, Content] = {}
    with CondaArtifact(written) as artifact:
        if artifact.name.stem != stem:
            raise VerifyError("the index has another name", expected=stem, found=artifact.name.stem)
        for header, tar in artifact.headers():
            name = header.name
            if name in found:  # A directory may come twice.
                continue
            content = _content(header, tar, found)
            found[name] = content
            if content != expected.get(name):
                raise VerifyError(
                    "a member of the written package has another content",
                    place=Place(member=name),
                    expected=_describe(expected.get(name)),
                    found=_describe(content),
                )
            if name in headers and header_digest(header) != headers[name]:
                raise VerifyError("a member's tar header changed", place=Place(member=name))
        _check_order(survey, edits, list(found))
        payload = {name: content for name, content in found.items() if not is_info(name)}
        for disagreement in PathsJson.parse(artifact.read(PATHS_JSON)).disagreements(payload):
            raise VerifyError("the written paths.json does not agree", found=str(disagreement))


def expected_contents(survey: Survey, edits: Edits) -> dict[str, Content]:
    """Return what each name of the result has to hold."""
    expected = {name: content for name, content in survey.contents.items() if name not in edits.dropped}
    for name, slimmed in edits.slimmed.items():
        expected[name] = slimmed.content
    for name, text in edits.texts.items():
        expected[name] = Content(MemberType.FILE, hashlib.sha256(text).hexdigest(), len(text))
    for name, target in survey.hard_links.items():
        if name in expected:
            expected[name] = expected[target]
    return expected


def _content(header: TarHeader, tar: TarReader, found: dict[str, Content]) -> Content:
    if header.type is MemberType.HARDLINK:
        return found[header.link_target or ""]
    if header.type is not MemberType.FILE:
        return Content(header.type)
    digest = hashlib.sha256()
    for part in tar.data():
        digest.update(part)
    return Content(header.type, digest.hexdigest(), header.size)


def _check_order(survey: Survey, edits: Edits, found: list[str]) -> None:
    """Compare names and order within ``info/`` and within the files; the two halves may swap."""
    wanted = list(dict.fromkeys(member.name for member in survey.members if member.name not in edits.dropped))
    added = STAMP in edits.texts and STAMP not in survey.contents
    for half in (True, False):
        left = [name for name in wanted if is_info(name) is half]
        if half and added:
            left.append(STAMP)
        right = [name for name in found if is_info(name) is half]
        if left != right:
            odd = next((name for name in (*left, *right) if name not in left or name not in right), "order")
            raise VerifyError("the written package has other members", place=Place(member=odd))


def _describe(content: Content | None) -> str:
    if content is None:
        return "no such member"
    if content.type is not MemberType.FILE:
        return str(content.type.value)
    return f"{content.size} bytes of SHA-256 {content.sha256}"
