"""A value given in another's place is named in one line, wherever it comes in."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import situate
from situate import Cluster, Device, Graph, Learning, Link, Op, Problem, Rules, Tensor
from situate.errors import SituateError
from situate.grouping import group

A, B = (Op(name, seconds={"*": 1.0}) for name in "ab")
GRAPH = Graph("g", (A, B), (Tensor("t", 0, 3, (1,)),))
TWO = Cluster.identical(2)
PROBLEM = Problem(GRAPH, TWO)
RESULT = situate.evaluate(PROBLEM, [0, 1])


def tensor(**fields: object) -> Graph:
    return Graph("g", (A, B), (Tensor(**({"name": "t", "producer": 0, "size": 3} | fields)),))


def device(**fields: object) -> Cluster:
    return Cluster("c", (Device(**({"name": "d"} | fields)),))


def link(**fields: object) -> Cluster:
    ends = {"source": "*", "target": "*", "bandwidth": 1e9}
    return Cluster("c", (Device("d"),), (Link(**(ends | fields)),))


CALLS = {
    "a cluster's file for a cluster": (
        lambda: Problem(GRAPH, "here.toml"),
        "problem: cluster: must be a situate.Cluster, got 'here.toml'; situate.Cluster.find finds",
    ),
    "a graph's": (lambda: Problem("g.json", TWO), "problem: graph: must be a situate.Graph, got"),
    "costs": (lambda: Problem(GRAPH, TWO, costs="c.json"), "problem: costs: must be a situate.C"),
    "rules": (lambda: Problem(GRAPH, TWO, rules=3), "problem: rules: must be a situate.Rules, got"),
    "a step's cluster": (
        lambda: situate.compile(RESULT.plan, None, cluster="here.toml"),
        "cluster: must be a situate.Cluster or None, got 'here.toml'",
    ),
    "a plan's file for a plan": (
        lambda: situate.compile("plan.json", None),
        "plan: must be a situate.Plan, got 'plan.json'; situate.Plan.read reads one",
    ),
    "a graph for a problem": (
        lambda: situate.solve(GRAPH),
        "problem: must be a situate.Problem, got an object of type 'Graph'; situate.Problem(graph,",
    ),
    "a graph to evaluate on": (
        lambda: situate.evaluate(GRAPH, [0, 1]),
        "problem: must be a situate.Problem",
    ),
    "the seed of a placement": (
        lambda: situate.evaluate(PROBLEM, [0, 1], seed="1"),
        "seed: must be an integer, got '1'",
    ),
    "the method of a placement": (
        lambda: situate.evaluate(PROBLEM, [0, 1], method=3),
        "method: must be a string, got 3",
    ),
    "schedule": (lambda: RESULT.plan.schedule(GRAPH), "problem: must be a situate.Problem"),
    "verify": (lambda: RESULT.schedule.verify(GRAPH), "problem: must be a situate.Problem"),
    "busy": (lambda: RESULT.schedule.busy(None), "problem: must be a situate.Problem, got None"),
    "costs of a plan": (lambda: RESULT.plan.check_costs("c.json"), "costs: must be a situate.Cost"),
    "learning": (
        lambda: situate.solve(PROBLEM, "ppo", learning={"noise": 1}),
        "learning: must be a situate.Learning or None, got an object of type 'dict'",
    ),
    "progress": (lambda: situate.solve(PROBLEM, on_progress=3), "on_progress: must be a function"),
    "time limit": (
        lambda: situate.solve(PROBLEM, time_limit="5"),
        "time_limit: must be a number or None, got '5'",
    ),
    "study": (lambda: Learning(study=3), "learning: study: must be a string or a path or None"),
    "told": (lambda: Learning(on_measured=3), "learning: on_measured: must be a function or None"),
    "contention": (lambda: Rules("r", contention="no"), "rules: contention: must be True or False"),
    "op": (lambda: Graph("g", ("a",)), "ops[0]: must be a situate.Op, got 'a'"),
    "ops": (lambda: Graph("g", None), "graph: ops: must be a tuple, got None"),
    "op's name": (lambda: Graph("g", (A, Op(3))), "ops[1]: name: must be a string, got 3"),
    "op's kind": (lambda: Graph("g", (Op("a", kind=[]),)), "op 'a': kind: must be a string, got"),
    "seconds": (lambda: Graph("g", (Op("a", seconds=2.0),)), "op 'a': seconds: must be a dict or"),
    "seconds on d": (
        lambda: Graph("g", (Op("a", seconds={"d": "2"}),)),
        "op 'a': seconds['d']: must be a number, got '2'",
    ),
    "graph's name": (lambda: Graph(3, (A,)), "graph: name: must be a string, got 3"),
    "unit": (
        lambda: Graph("g", (A,), unit="ms"),
        "graph 'g': unit: must be 's' or empty, got 'ms'",
    ),
    "producer": (lambda: tensor(producer=0.5), "tensor 't': producer: must be an integer, got 0.5"),
    "consumer": (
        lambda: tensor(consumers=("b",)),
        "tensor 't': consumers: must be an integer, got",
    ),
    "output": (lambda: tensor(output="no"), "tensor 't': output: must be True or False, got 'no'"),
    "control": (lambda: Graph("g", (A, B), (), (0, 1)), "control[0]: must be a tuple, got 0"),
    "three": (lambda: Graph("g", (A, B), (), ((0, 1, 1),)), "control[0]: must be a pair of op ind"),
    "before": (lambda: Graph("g", (A, B), (), (("a", 1),)), "control[0]: must be an integer, got"),
    "devices": (lambda: Cluster("c", ["d"]), "cluster 'c': devices[0]: must be a situate.Device"),
    "kind": (lambda: device(kind=3), "cluster 'c': devices[0]: kind: must be a string, got 3"),
    "threads": (
        lambda: device(threads=2.5),
        "devices[0]: threads: must be an integer or None, got",
    ),
    "flops": (lambda: device(flops=1e12), "devices[0]: flops: must be a dict, got 1000000000000.0"),
    "peak": (lambda: device(flops={"float32": "1"}), "flops 'float32': must be a number, got '1'"),
    "dtype": (lambda: device(flops={None: 1.0}), "flops: unknown dtype None"),
    "links": (lambda: Cluster("c", (Device("d"),), (3,)), "cluster 'c': links[0]: must be a situa"),
    "bandwidth": (lambda: link(bandwidth="1"), "links[0]: bandwidth: must be a number, got '1'"),
    "both": (lambda: link(both="no"), "links[0]: both: must be True or False, got 'no'"),
    "machine": (lambda: Cluster.of_machine("c", None), "machine: must be a tuple, got None"),
    "identical": (lambda: Cluster.identical("2"), "the number of devices: must be an integer, got"),
    "preset": (lambda: Cluster.preset(3), "preset: must be a string, got 3"),
    "network": (lambda: situate.zoo.load(3), "network: must be a string, got 3"),
    "optimizer": (lambda: situate.find_model("rnnlm", 3), "optimizer: must be a string, got 3"),
    "expert": (lambda: situate.zoo.expert("rnnlm", 2), "graph: must be a situate.Graph, got 'rnn"),
    "format": (lambda: situate.read("g.json", 3), "format: must be a string or None, got 3"),
    "dims": (lambda: situate.read("g.onnx", dims="b=8"), "dims: must be a dict or None, got 'b=8'"),
    "rule": (lambda: group(PROBLEM, 3), "grouping: must be a string, got 3"),
    "groups": (
        lambda: group(PROBLEM, "heavy-edge", 2.5),
        "groups: must be an integer or None, got",
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_what_is_nothing_of_the_kind_is_named_in_one_line(call: str) -> None:
    what, message = CALLS[call]
    with pytest.raises(SituateError, match=re.escape(message)) as error:
        what()
    assert "\n" not in str(error.value)


def test_numbers_of_numpy_and_lists_are_as_good_as_pythons() -> None:
    drawn = tensor(producer=np.int64(0), consumers=[np.int32(1)], output=np.bool_(True))
    assert drawn.hash == tensor(consumers=(1,), output=True).hash
    drawn = Cluster("c", [Device(np.str_("d"), bandwidth=np.float32(2), threads=np.int8(1))])
    assert drawn.hash == device(bandwidth=2.0, threads=1).hash


def test_names_that_are_paths_are_found(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text('name = "c"\n[[devices]]\nname = "d"\n')
    assert Cluster.find(path).names == ["d"]
    with pytest.raises(SituateError, match="no such file"):
        situate.find_model(tmp_path / "none.json")


def test_of_two_faults_the_first_that_is_declared_is_named() -> None:
    with pytest.raises(SituateError, match="kind: must be"):
        Graph("g", (Op("a", kind=3, dtype=3, module=3),))
