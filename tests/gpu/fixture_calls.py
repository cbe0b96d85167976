"""The child process for a library of the corpus: call its functions on the device, without PyTorch.

    python fixture_calls.py CUDART LIBRARY FUNCTION…

Prints JSON: for each function the CUDA error of its launch and what it computed. Without a device the launch
itself fails, with the runtime's own code for that; everything up to it has run then.
"""

from __future__ import annotations

import ctypes
import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT = 1000
FLOATS = ctypes.c_float * COUNT
TO_DEVICE, TO_HOST = 1, 2


def main() -> None:
    """Load, call, print."""
    cudart, path, *functions = sys.argv[1:]
    runtime = ctypes.CDLL(cudart, mode=ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(path)
    count = ctypes.c_int()
    found: dict[str, Any] = {"devices": runtime.cudaGetDeviceCount(ctypes.byref(count)), "count": count.value}
    for name in functions:
        runtime.cudaGetLastError()
        found[name] = call(runtime, getattr(library, name), name)
    print(json.dumps(found))


def call(runtime: ctypes.CDLL, function: Callable[..., int], name: str) -> dict[str, Any]:
    """Call ``add(a, b, sum, n)``, ``scale(a, factor, n)``, ``twice(a, n)`` or ``launch_N(a, n)``."""
    a, b = device_array(runtime, 1.0), device_array(runtime, 0.25)
    if name == "add":
        error, result = function(a, b, a, COUNT), a
    elif name == "scale":
        error, result = function(a, ctypes.c_float(3.0), COUNT), a
    else:
        error, result = function(a, COUNT), a
    finished = runtime.cudaDeviceSynchronize()
    values = FLOATS()
    copied = runtime.cudaMemcpy(values, result, ctypes.c_size_t(ctypes.sizeof(values)), TO_HOST)
    for array in (a, b):
        runtime.cudaFree(array)
    return {"launch": error, "finish": finished, "copy": copied, "values": list(values)}


def device_array(runtime: ctypes.CDLL, step: float) -> ctypes.c_void_p:
    """Numbers 0, step, 2·step, … on the device; a null pointer without one."""
    pointer = ctypes.c_void_p()
    size = ctypes.c_size_t(ctypes.sizeof(FLOATS))
    if runtime.cudaMalloc(ctypes.byref(pointer), size) == 0:
        runtime.cudaMemcpy(pointer, FLOATS(*(step * i for i in range(COUNT))), size, TO_DEVICE)
    return pointer


if __name__ == "__main__":
    main()
