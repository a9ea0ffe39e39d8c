from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from situate.data.graph import Graph
from situate.data.problem import Problem
from situate.data.rules import RULES
from situate.errors import ScheduleError, SituateError
from situate.simulation.atomic import schedule_calls
from situate.writers.schedule_json import write
from tests.report.handmade import HOSTILE, chain, schedule


def test_every_op_and_transfer_is_there(tmp_path: Path) -> None:
    problem = chain(3)
    write(problem, schedule(problem, [0, 1, 1]), tmp_path / "s.json")
    content = json.loads((tmp_path / "s.json").read_text("utf-8"))
    assert content["rules"] == "situate"
    assert content["unit"] == "s"
    assert content["devices"] == ["gpu0", "gpu1"]
    assert content["ops"] == [
        {"name": "op0", "device": "gpu0", "start": 0.0, "end": 1.0},
        {"name": "op1", "device": "gpu1", "start": 2.0, "end": 3.0},
        {"name": "op2", "device": "gpu1", "start": 3.0, "end": 4.0},
    ]
    assert content["transfers"] == [
        {"tensor": "t:op0", "from": "gpu0", "to": "gpu1", "start": 1.0, "end": 2.0}
    ]
    assert content["makespan"] == 4.0
    assert content["peak_memory"] == {"gpu0": 111, "gpu1": 221}


def test_times_keep_every_bit(tmp_path: Path) -> None:
    problem = chain(4, bandwidth=3.0)
    plan = schedule(problem, [0, 1, 0, 1])
    write(problem, plan, tmp_path / "s.json")
    content = json.loads((tmp_path / "s.json").read_text("utf-8"))
    assert [op["end"] for op in content["ops"]] == plan.end.tolist()
    assert [move["end"] for move in content["transfers"]] == plan.transfer_end.tolist()


def test_signals_that_take_time_are_called_after_their_op(tmp_path: Path) -> None:
    chained = chain(2)
    graph = Graph("control", chained.graph.ops, control=((0, 1),))
    cluster = type(chained.cluster)(
        "c", chained.cluster.devices, chained.cluster.links, synchronisation=0.5
    )
    problem = Problem(graph, cluster)
    write(problem, schedule(problem, [0, 1]), tmp_path / "s.json")
    (move,) = json.loads((tmp_path / "s.json").read_text("utf-8"))["transfers"]
    assert (move["tensor"], move["end"] - move["start"]) == ("control:op0", 0.5)


def test_hostile_names_survive_and_close_no_script(tmp_path: Path) -> None:
    problem = chain(names=HOSTILE)
    write(problem, schedule(problem, [0] * 8), tmp_path / "s.json")
    data = (tmp_path / "s.json").read_bytes()
    assert [op["name"] for op in json.loads(data)["ops"]] == list(HOSTILE)
    assert b"</script" not in data
    assert b"\x1b" not in data


def test_an_unwritable_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SituateError, match="cannot write"):
        write(chain(1), schedule(chain(1), [0]), tmp_path / "missing" / "s.json")


def test_a_schedule_that_never_ends_is_not_written(tmp_path: Path) -> None:
    problem = chain(3, rules=RULES["dnn-partitioning"])
    waiting = schedule_calls(problem, np.array([0, 1, 0], np.int32))
    with pytest.raises(ScheduleError, match="never ends"):
        write(problem, waiting, tmp_path / "s.json")
    assert not (tmp_path / "s.json").exists()
