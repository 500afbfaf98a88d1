"""What memory there is for state: of the machine, or of the control groups that a process is in."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from anabranch.engine.machine import NO_LIMIT, free_memory
from anabranch.engine.reading import LEAST_EPOCH, limits_of
from anabranch.settings import Settings


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    folder = tmp_path / "proc"
    (folder / "self").mkdir(parents=True)
    (folder / "meminfo").write_text("MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable: 8000 kB\n")
    return folder


def group(folder: Path, limit: str, stat: str, name: str = "memory.max") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(limit)
    (folder / "memory.stat").write_text(stat)


def test_without_groups_the_machine_tells(proc: Path, tmp_path: Path) -> None:
    assert free_memory(proc, tmp_path / "none") == 8000 * 1024
    (proc / "self/cgroup").write_text("0::/\n")
    assert free_memory(proc, tmp_path / "none") == 8000 * 1024


def test_pages_of_files_are_free(proc: Path, tmp_path: Path) -> None:
    (proc / "self/cgroup").write_text("0::/pod/container\n")
    group(tmp_path / "groups/pod/container", "max", "anon 300000\nfile 5\n")
    group(tmp_path / "groups/pod", "1000000", "anon 400000\nfile 590000\n")
    assert free_memory(proc, tmp_path / "groups") == 600_000


def test_the_first_edition_of_groups(proc: Path, tmp_path: Path) -> None:
    (proc / "self/cgroup").write_text("4:cpu:/other\n3:memory:/jobs\n")
    name = "memory.limit_in_bytes"
    group(tmp_path / "memory", str(NO_LIMIT), "rss 1\ntotal_rss 9\n", name)
    group(tmp_path / "memory/jobs", "500000", "rss 1\ntotal_rss 200000\n", name)
    assert free_memory(proc, tmp_path) == 300_000


def test_a_container_that_is_mounted_as_the_root(proc: Path, tmp_path: Path) -> None:
    (proc / "self/cgroup").write_text("0::/elsewhere/container\n")
    group(tmp_path, "500000", "anon 100000\n")
    assert free_memory(proc, tmp_path) == 400_000


def test_more_than_the_limit_leaves_nothing(proc: Path, tmp_path: Path) -> None:
    (proc / "self/cgroup").write_text("0::/\n")
    group(tmp_path, "500000", "anon 600000\n")
    assert free_memory(proc, tmp_path) == 0


def test_here_it_can_be_told() -> None:
    assert free_memory() > 0


def test_an_epoch_reads_no_more_than_sites_can_hold() -> None:
    usual = Settings(site_memory_bytes=None)
    assert limits_of(usual, math.inf, 2, 4).bytes == usual.max_bytes_per_epoch
    limited = Settings(site_memory_bytes=100 << 20)
    assert limits_of(limited, 800 << 20, 2, 4).bytes == 50 << 20
    assert limits_of(limited, 64 << 30, 2, 4).bytes == limited.max_bytes_per_epoch
    assert limits_of(limited, 1000, 2, 4).bytes == LEAST_EPOCH
