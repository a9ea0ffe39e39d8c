"""The resources that a process may use, on machines whose limits are files of the tests."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from situate.host import machine
from situate.host.machine import (
    at_most,
    cpu_name,
    process_start,
    thread_limit,
    usable_cpus,
    usable_memory,
)

Limit = Callable[[str, dict[str, str]], None]


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Limit:
    """Puts a process with 16 processors and 1 TiB into control groups with these files."""

    def limited(membership: str, files: dict[str, str]) -> None:
        (tmp_path / "membership").write_text(membership)
        for name, content in files.items():
            path = tmp_path / "cgroup" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content + "\n")

    monkeypatch.setattr(machine, "MEMBERSHIP", tmp_path / "membership")
    monkeypatch.setattr(machine, "CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(machine, "_main_memory", lambda: iter([2**40]))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)), raising=False)
    return limited


def test_without_control_groups_all_may_be_used(limit: Limit) -> None:
    assert (usable_cpus(), usable_memory()) == (16, 2**40)


def test_a_container_may_use_what_its_group_has(limit: Limit) -> None:
    limit("0::/\n", {"memory.max": "2147483648", "cpu.max": "250000 100000"})
    assert (usable_cpus(), usable_memory()) == (2, 2**31)


VERSION_2 = {
    "a/b/memory.max": "max",
    "a/b/cpu.max": "max 100000",
    "a/memory.max": "7000",
    "a/cpu.max": "400000 100000",
    "c/memory.max": "1",
}
VERSION_1 = {
    "memory/job/memory.limit_in_bytes": "5000",
    "memory/memory.limit_in_bytes": "9223372036854771712",
    "cpu/cpu.cfs_quota_us": "300000",
    "cpu/cpu.cfs_period_us": "100000",
    "pids/memory.limit_in_bytes": "1",
}


@pytest.mark.parametrize(
    ("membership", "files", "held_to"),
    [
        ("0::/a/b\n", VERSION_2, (4, 7000)),
        ("4:memory:/job\n3:cpu,cpuacct:/elsewhere\n2:pids:/\n0::/\n", VERSION_1, (3, 5000)),
    ],
    ids=["version 2", "version 1"],
)
def test_the_narrowest_of_the_groups_around_holds(
    limit: Limit, membership: str, files: dict[str, str], held_to: tuple[int, int]
) -> None:
    limit(membership, files)
    assert (usable_cpus(), usable_memory()) == held_to


def test_there_is_one_processor_at_least(limit: Limit) -> None:
    limit("0::/\n", {"cpu.max": "50000 100000"})
    assert usable_cpus() == 1
    limit("1:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"})
    assert usable_cpus() == 16


def test_this_machine_has_a_name_a_processor_and_memory() -> None:
    assert cpu_name()
    assert 1 <= usable_cpus() <= (os.cpu_count() or 1)
    memory = usable_memory()
    assert memory is None or memory > 2**27


@pytest.mark.skipif(not machine.STATUS.is_file(), reason="the system does not say")
def test_a_process_starts_between_the_call_and_its_answer() -> None:
    program = "from situate.host.machine import process_start; print(process_start())"
    before = time.time()
    answer = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    # The kernel counts in ticks.
    tick = 1 / os.sysconf("SC_CLK_TCK")
    assert before - 2 * tick <= float(answer.stdout) <= time.time()


def test_where_the_system_does_not_say_the_start_is_unknown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(machine, "STATUS", tmp_path / "none")
    assert process_start() is None


def test_the_smallest_limit_around_holds():
    assert thread_limit(8) == 8
    with at_most(3):
        assert (thread_limit(8), thread_limit(2)) == (3, 2)
        with at_most(5):
            assert thread_limit(8) == 3
        with at_most(1):
            assert thread_limit(8) == 1
        assert thread_limit(8) == 3
    assert thread_limit(8) == 8
