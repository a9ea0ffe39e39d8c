"""Trials by workers are those of threads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from situate.solvers.evolutionary.regal.training.instances import Instances
from situate.solvers.evolutionary.regal.training.trials import trials
from tests.solvers.evolutionary.regal.training.test_data_set import TIME, filled, graph
from tests.solvers.evolutionary.regal.training.test_instances import QUICK


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_find_what_threads_find(workers: int) -> None:
    found = []
    for where in (None, workers):
        train = Instances([graph("a", 8), graph("b", 9)], TIME, QUICK, 1, 5)
        valid = Instances([graph("c", 7)], TIME, QUICK, 0, 5)
        with trials(where, 2, [train, valid]) as running:
            encoded = [*running.encoded(train, [0, 3, 0]), *running.encoded(valid, [0])]
            actions = [
                np.stack([np.zeros((n, 6), np.int64), np.ones((n, 6), np.int64)]) for n in (8, 9)
            ]
            rewards = running.rewards(train, [0, 3], actions, 7)()
        assert rewards.shape == (2, 2)
        known = [*train.values, *valid.values]
        found.append(([each.nodes.tolist() for each in encoded], rewards.tolist(), repr(known)))
    assert found[0] == found[1]


def test_a_training_by_workers_writes_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    from situate.solvers.evolutionary.regal.training import train as module
    from tests.solvers.evolutionary.regal.training.test_trainer import SMALL

    monkeypatch.setattr(module, "SETTINGS", {("tuned", "time"): SMALL})
    filled(tmp_path / "data", a=graph("a", 5), b=graph("b", 6))

    def trained(workers: int | None) -> bytes:
        data, out = tmp_path / "data", tmp_path / str(workers)
        options = module.Options(data, out, TIME, steps=4, workers=workers)
        return module.train(options, lambda _: None, lambda _: None).read_bytes()

    assert trained(None) == trained(2)
