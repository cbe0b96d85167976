"""Copying a range of one file into another without taking it through this process."""

from __future__ import annotations

import errno
import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from wheelslim.source import Source

STEP = 1 << 24
_READ = 1 << 20
_UNABLE = {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EBADF}


def copy_range(source: Source, fd: int, offset: int, progress: Callable[[int], object]) -> None:
    """Copy all of ``source`` to ``offset`` of the open file ``fd``, calling ``progress`` with each size.

    The kernel copies, or shares the blocks, where it can.

    Raises:
        ArtifactError: the source became shorter.
        OSError: the operating system refuses.
    """
    done = _copy_in_kernel(source, fd, offset, progress)
    for block in source.blocks(done, source.size - done, _READ):
        write_at(fd, block, offset + done)
        done += len(block)
        progress(len(block))


def _copy_in_kernel(source: Source, fd: int, offset: int, progress: Callable[[int], object]) -> int:
    done = 0
    if not hasattr(os, "copy_file_range"):
        return done
    while done < source.size:
        try:
            step = os.copy_file_range(
                source.fd, fd, min(STEP, source.size - done), source.base + done, offset + done
            )
        except OSError as error:
            if error.errno in _UNABLE:
                return done
            raise
        if step == 0:  # Nothing there, or a file system that only says so: reading finds out.
            return done
        done += step
        progress(step)
    return done


_pwrite: Callable[[int, bytes, int], int]
if hasattr(os, "pwrite"):
    _pwrite = os.pwrite
else:  # Windows has no positional write: one lock keeps seek and write together.
    _seek_lock = threading.Lock()

    def _pwrite(fd: int, data: bytes, offset: int, /) -> int:
        with _seek_lock:
            os.lseek(fd, offset, os.SEEK_SET)
            return os.write(fd, data)


def write_at(fd: int, data: bytes, offset: int) -> None:
    """Write all of ``data`` at ``offset`` of the open file ``fd``.

    Raises:
        OSError: the operating system refuses.
    """
    written = _pwrite(fd, data, offset)
    while written < len(data):
        written += _pwrite(fd, data[written:], offset + written)
