"""Piper's experiments."""

from __future__ import annotations

import pytest

from situate.bench.best_known import BestKnown
from situate.bench.families.piper import GIB, instances
from situate.bench.instances import problem_hash
from situate.bench.rows import RowFile
from situate.bench.run import Bench
from situate.errors import SituateError
from tests.bench.small import runs
from tests.sharding.stage_problems import random_content, write


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "bert32a100.json", random_content(0))
    return tmp_path


def test_an_instance_has_the_devices_of_its_experiment(folder):
    names = {instance.name: instance for instance in instances(folder)}
    assert len(names) == 23
    instance = names["512 devices of 8 GiB"]
    problem = instance.make()
    assert (problem.devices, problem.memory, problem.batches) == (512, 8 * GIB, 1920)
    assert instance.reference.value == pytest.approx(2.561127846e-3)
    assert names["8 devices of 1 GiB"].reference is None


def test_a_row_has_seconds_and_a_bound(folder):
    [instance] = [i for i in instances(folder) if i.name == "8 devices of 1 GiB"]
    [row] = Bench(runs(instance, methods=("auto",)), RowFile(), BestKnown()).run()
    assert (row.feasible, row.devices, row.ops) == (True, 8, 4)
    assert row.lower_bound == pytest.approx(row.value, rel=1e-8)


def test_problems_of_other_limits_have_other_hashes(folder):
    assert len({problem_hash(instance.make()) for instance in instances(folder)}) == 23


def test_a_folder_without_the_file_is_refused(tmp_path):
    with pytest.raises(SituateError, match=r"bert32a100\.json: no such file"):
        instances(tmp_path)
