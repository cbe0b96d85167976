"""The environment that runs this program: what ``wheelslim env`` slims when no path is given."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path


def default_root() -> Path:
    """Return the virtual environment or conda prefix, else the directory that pip installs into.

    A system's whole prefix (``/usr``) is never meant: there it is site-packages alone.
    """
    prefix = Path(sys.prefix)
    if sys.prefix != sys.base_prefix or (prefix / "conda-meta").is_dir():
        return prefix
    paths = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    return Path(os.path.commonpath(paths))
