"""What NumPy is told of the processor, before it is first imported.

NumPy sorts 64-bit words with AVX-512 where there is any. AMD's Zen 4 has it, but writes selected lanes to
memory in microcode: there the same sort with AVX2 takes a third to a fourth of the time, and sites sort all
that they get. Only workers and the command line are told; a program that imports us keeps its NumPy.
"""

from __future__ import annotations

import os
from pathlib import Path

DISABLED = "NPY_DISABLE_CPU_FEATURES"
WIDE = "X86_V4 AVX512_ICL"
"""AVX-512 in the words of NumPy 2.4; another NumPy passes over names that it does not know."""
WORKER = "ANABRANCH_WORKER"
"""Set in the environment of workers."""
CPU_INFO = Path("/proc/cpuinfo")
ZEN_3_AND_4 = "25"
ENOUGH = 8192
"""Bytes in which the first processor is told."""


def settle_numpy(info: Path = CPU_INFO) -> None:
    """Leaves AVX-512 out of what NumPy uses where sorting is slower with it, unless the user has chosen."""
    if DISABLED not in os.environ and sorts_slowly(info):
        os.environ[DISABLED] = WIDE


def sorts_slowly(info: Path = CPU_INFO) -> bool:
    """Whether the processor is one whose AVX-512 is slow at sorting."""
    try:
        with open(info) as file:
            first = file.read(ENOUGH).partition("\n\n")[0]
    except OSError:
        return False
    lines = (line.partition(":") for line in first.splitlines())
    told = {name.strip(): value.strip() for name, _, value in lines}
    return (
        told.get("vendor_id") == "AuthenticAMD"
        and told.get("cpu family") == ZEN_3_AND_4
        and "avx512f" in told.get("flags", "").split()
    )
