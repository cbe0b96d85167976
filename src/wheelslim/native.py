"""The GPUs of this machine, through NVML or ``nvidia-smi``."""

from __future__ import annotations

import re

from wheelslim.architecture import ComputeCapability
from wheelslim.errors import TargetError

NVML_LIBRARY = "libnvidia-ml.so.1"
_TIMEOUT = 30  # seconds; a driver in trouble can hang nvidia-smi for ever
_COMPUTE_CAP = re.compile(r"([0-9]{1,2})\.([0-9])", re.ASCII)


def native() -> tuple[ComputeCapability, ...]:
    """Return the compute capabilities of this machine's GPUs, ascending, each once.

    Raises:
        TargetError: there is no NVIDIA driver, no GPU, or neither way gives an answer.
    """
    found = from_nvml() or from_nvidia_smi()
    if not found:
        raise TargetError(
            "'native' finds no NVIDIA GPU on this machine",
            expected=f"an answer from NVML ({NVML_LIBRARY}) or nvidia-smi",
            hint="Name the target instead, for example sm_86 or rtx-4090",
        )
    return tuple(sorted(found))


def from_nvml(library: str = NVML_LIBRARY) -> frozenset[ComputeCapability]:
    """Ask NVML; empty where it is absent or fails."""
    import ctypes

    try:
        nvml = ctypes.CDLL(library)
        if nvml.nvmlInit_v2() != 0:
            return frozenset()
    except (OSError, AttributeError):
        return frozenset()
    found = set()
    try:
        count = ctypes.c_uint()
        if nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0:
            return frozenset()
        for index in range(count.value):
            device, major, minor = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_int()
            if nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(device)) != 0:
                continue
            status = nvml.nvmlDeviceGetCudaComputeCapability(device, ctypes.byref(major), ctypes.byref(minor))
            if status == 0:
                found.add(ComputeCapability(major.value, minor.value))
    except AttributeError:  # an NVML without one of these functions
        return frozenset()
    finally:
        nvml.nvmlShutdown()
    return frozenset(found)


def from_nvidia_smi() -> frozenset[ComputeCapability]:
    """Ask the ``nvidia-smi`` on PATH; empty where it is absent or fails.

    Lines that hold no compute capability (``[N/A]``) are passed over.
    """
    import shutil
    import subprocess

    program = shutil.which("nvidia-smi")
    if program is None:
        return frozenset()
    try:
        run = subprocess.run(
            [program, "--query-gpu=compute_cap", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return frozenset()
    if run.returncode != 0:
        return frozenset()
    matches = (_COMPUTE_CAP.fullmatch(line.strip()) for line in run.stdout.splitlines())
    return frozenset(ComputeCapability(int(match[1]), int(match[2])) for match in matches if match)
