"""A core or GPU has one owner, until the owner's process ends."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from situate.evaluators.hardware import reservation
from situate.evaluators.hardware.reservation import Reservation, usable_cores, visible_gpus
from situate.evaluators.workers.workers import Unfit
from situate.host.machine import usable_cpus

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="cores are owned on Linux")

NAME = f"\0situate's tests {os.getpid()}"
OWNS = f"""
import sys
from situate.evaluators.hardware import reservation
reservation.SOCKET_NAME_PREFIX = {NAME!r}
mine = reservation.Reservation(1, 0)
print(*mine.cores, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _movable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process goes back to all its cores, which other tests may own meanwhile."""
    monkeypatch.setattr(reservation, "SOCKET_NAME_PREFIX", NAME)
    monkeypatch.setattr(reservation, "CLAIM_ATTEMPTS", 1)
    before = os.sched_getaffinity(0)
    yield
    os.sched_setaffinity(0, before)


# Claims by real processes: exclusive, and released with them.
def test_a_core_is_owned_once_and_free_when_its_owner_is_gone() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNS], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        claim = int(process.stdout.readline())
        with pytest.raises(
            Unfit, match=rf"found no {usable_cpus()} cores and 0 GPUs on '.*' that no other"
        ):
            Reservation(usable_cpus(), 0)
        process.kill()
    mine = Reservation(usable_cpus(), 0)
    assert claim in mine.cores
    mine.close()


def test_a_process_stays_on_what_it_owns() -> None:
    mine = Reservation(1, 0)
    assert os.sched_getaffinity(0) == set(mine.cores)
    assert mine.place.endswith(f": cores {mine.cores[0]}")
    mine.close()


# The order of cores and the names of GPUs.
def test_hardware_threads_of_a_core_stand_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for core, siblings in enumerate(("0,2", "1,3", "0,2", "1,3")):
        (tmp_path / str(core)).write_text(siblings)
    monkeypatch.setattr(reservation, "SIBLINGS_FILE", f"{tmp_path}/{{}}")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    monkeypatch.setattr(reservation, "usable_cpus", lambda: 4)
    assert usable_cores() == [0, 2, 1, 3]
    monkeypatch.setattr(reservation, "usable_cpus", lambda: 2)
    assert usable_cores() == [0, 2]


def test_gpus_are_named_as_they_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.delenv(reservation.VISIBLE_GPUS_VARIABLE, raising=False)
    assert visible_gpus(1) == ["0", "1"]
    monkeypatch.setenv(reservation.VISIBLE_GPUS_VARIABLE, "3,GPU-5,7")
    assert visible_gpus(1) == ["3", "GPU-5"]
    assert visible_gpus(0) == []
    mine = Reservation(1, 1)
    assert (mine.gpus, os.environ[reservation.VISIBLE_GPUS_VARIABLE]) == (["3"], "3")
    mine.close()
