"""Load a library in a process of its own, in the ways that services do: a program, run by ``chain.py``.

Arguments: the library, the way (``load``, ``cycles``, ``fork``), modules to import first.
"""

from __future__ import annotations

import _ctypes
import ctypes
import importlib
import os
import sys

CYCLES = 1000


def main(library: str, way: str, *first: str) -> int:
    """Load ``library``; 0 when all went well."""
    log = os.environ.pop("WHEELSLIM_SPY_LOG", None)
    for name in first:
        importlib.import_module(name)
    if log and way == "load":
        os.environ["WHEELSLIM_SPY_LOG"] = log  # What the modules load is of no interest.
    for _ in range(CYCLES if way == "cycles" else 1):
        handle = _ctypes.dlopen(library, os.RTLD_NOW | os.RTLD_LOCAL)
        answer(handle)
        if way == "cycles":
            _ctypes.dlclose(handle)
    return forked(library, handle) if way == "fork" else 0


def answer(handle: int) -> None:
    """Call the function that libraries of the corpus have."""
    try:
        address = _ctypes.dlsym(handle, "answer")
    except OSError:
        return
    if ctypes.CFUNCTYPE(ctypes.c_int)(address)() != 42:
        raise SystemExit("the library's answer is wrong")


def forked(library: str, handle: int) -> int:
    """Use, close and load again in a child, then use in the parent."""
    child = os.fork()
    if child == 0:
        answer(handle)
        _ctypes.dlclose(handle)
        answer(_ctypes.dlopen(library, os.RTLD_NOW | os.RTLD_LOCAL))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    answer(handle)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
