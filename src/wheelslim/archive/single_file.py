"""Writing a single library anew."""

from __future__ import annotations

import hashlib
import os
import shutil
from typing import TYPE_CHECKING

from wheelslim.archive.storage import storage_errors
from wheelslim.errors import WheelslimError
from wheelslim.pieces import stream
from wheelslim.rewriter import HEAD_SIZE, ChangedMember, RewriteResult
from wheelslim.source import Source

if TYPE_CHECKING:
    from pathlib import Path

    from wheelslim.rewriter import Rewriter


def rewrite_file(path: Path, destination: Path, rewriter: Rewriter) -> RewriteResult:
    """Write ``path``, as ``rewriter`` wants it, to the existing file ``destination``; keeps mode and times.

    Raises:
        VerifyError: what was written does not keep the promises.
        StorageError: the operating system refuses.
    """
    with storage_errors(path), path.open("rb") as file:
        source = Source.of_file(file.fileno())
        try:
            return _rewrite(path, source, destination, rewriter)
        except WheelslimError as error:
            raise error.at(member=path.name) from error.__cause__


def _rewrite(path: Path, source: Source, destination: Path, rewriter: Rewriter) -> RewriteResult:
    head = source.read(0, min(HEAD_SIZE, source.size))
    pieces = rewriter.plan(path.name, source) if rewriter.wants(path.name, source.size, head) else None
    digest = hashlib.sha256()
    size = 0
    with storage_errors(destination), destination.open("r+b") as out:
        out.truncate()
        for block in source.blocks() if pieces is None else stream(pieces, source):
            out.write(block)
            digest.update(block)
            size += len(block)
        out.flush()
        if pieces is not None:
            rewriter.confirm(path.name, source, Source.of_file(out.fileno()))
    with storage_errors(destination):
        shutil.copystat(path, destination)
        status = path.stat()
        if hasattr(os, "chown") and os.geteuid() == 0:
            os.chown(destination, status.st_uid, status.st_gid)
    if pieces is None:
        return RewriteResult((), (), source.size, source.size)
    before = hashlib.sha256()
    for block in source.blocks():
        before.update(block)
    change = ChangedMember(path.name, source.size, size, before.hexdigest(), digest.hexdigest())
    return RewriteResult((change,), (), source.size, size)
