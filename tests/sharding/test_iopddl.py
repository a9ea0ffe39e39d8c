"""Files of the contest on sharding."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from situate.errors import SituateError
from situate.sharding import is_sharding_problem, read_sharding_problem
from tests.sharding.problems import content, random_problem, write


# Files are recognised by their content.
def test_a_problem_is_recognised(tmp_path):
    path = write(tmp_path / "a.json", content(random_problem(0)))
    assert is_sharding_problem(path)


def test_so_is_one_that_is_packed(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(gzip.compress(json.dumps(content(random_problem(0))).encode()))
    assert is_sharding_problem(path)
    assert read_sharding_problem(path).cost([0] * 7) == random_problem(0).cost([0] * 7)


@pytest.mark.parametrize("data", [b"", b"{}", b'{"nodes": []}', b"\x1f\x8b\x00broken", b"\x00"])
def test_other_files_are_not(tmp_path, data):
    path = tmp_path / "a.json"
    path.write_bytes(data)
    assert not is_sharding_problem(path)


def test_a_file_that_is_not_there_is_none(tmp_path):
    assert not is_sharding_problem(tmp_path / "none")


# Reading keeps costs, usages and times.
@pytest.mark.parametrize("seed", range(5))
def test_what_is_written_is_read(tmp_path, seed):
    problem = random_problem(seed)
    back = read_sharding_problem(write(tmp_path / "a.json", content(problem)))
    assert content(back) == content(problem)


def test_edges_of_the_same_ops_become_one(tmp_path):
    problem = content(random_problem(0, ops=2, most=2))
    sizes = [len(costs) for costs in problem["problem"]["nodes"]["costs"]]
    one = np.arange(sizes[0] * sizes[1]).reshape(sizes)
    problem["problem"]["edges"] = {
        "nodes": [[0, 1], [1, 0]],
        "costs": [one.ravel().tolist(), (10 * one.T).ravel().tolist()],
    }
    back = read_sharding_problem(write(tmp_path / "a.json", problem))
    assert back.edges == ((0, 1),)
    assert (back.tables[0] == 11 * one).all()


def test_an_edge_from_an_op_to_itself_is_a_cost_of_the_op(tmp_path):
    problem = {"problem": {"nodes": {"intervals": [[0, 1]], "costs": [[1, 2]], "usages": [[0, 0]]}}}
    problem["problem"]["edges"] = {"nodes": [[0, 0]], "costs": [[10, 9, 9, 20]]}
    back = read_sharding_problem(write(tmp_path / "a.json", problem))
    assert [back.cost([0]), back.cost([1])] == [11, 22]


def test_without_a_limit_everything_fits(tmp_path):
    problem = content(random_problem(0))
    del problem["problem"]["usage_limit"]
    back = read_sharding_problem(write(tmp_path / "a.json", problem))
    assert back.limit >= back.peak([0] * 7)


# What is wrong is named with its place.
def nodes(**parts):
    whole = {"intervals": [[0, 1]], "costs": [[1, 2]], "usages": [[3, 4]]}
    return {"problem": {"nodes": whole | parts, "edges": {"nodes": [], "costs": []}}}


def edges(pairs, costs):
    whole = nodes(intervals=[[0, 1]] * 2, costs=[[1, 2]] * 2, usages=[[0, 0]] * 2)
    whole["problem"]["edges"] = {"nodes": pairs, "costs": costs}
    return whole


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (nodes(costs=[]), r"nodes\.costs: there is no op"),
        (nodes(intervals=[]), r"nodes\.intervals: 0 rows for 1 ops"),
        (nodes(costs=[[]], usages=[[]]), "op 0: 0 costs and 0 usages"),
        (nodes(costs=[[1]]), "op 0: 1 costs and 2 usages"),
        (nodes(usages=[[3, -4]]), r"nodes\.usages\[0\]: must not be negative, got -4"),
        (nodes(costs=[[1, 2**63]]), r"nodes\.costs\[0\]|expected int"),
        (nodes(usages=[[2**62, 2**62 + 1]]), r"nodes\.usages\[0\]: holds a number beyond 2\^62"),
        (nodes(costs=[[1, "x"]]), r"nodes\.costs\[0\]\[1\]: expected int, got str"),
        (nodes(costs=[[1, 0.5]]), r"nodes\.costs\[0\]\[1\]: expected int, got float"),
        (nodes(intervals=[[0, 2**63]]), r"nodes\.intervals|expected int"),
        (nodes(extra=1), "unknown field"),
        (edges([[0, 1]], []), r"edges\.costs: 0 tables for 1 edges"),
        (edges([[0, 2]], [[0] * 4]), r"edges\.nodes\[0\]: must name two of 2 ops, got \[0, 2\]"),
        (edges([[0]], [[0] * 4]), r"edges\.nodes\[0\]: must name two"),
        (edges([[0, 1]], [[0] * 3]), r"edges\.costs\[0\]: 3 numbers for 4 pairs"),
        (nodes() | {"problem": nodes()["problem"] | {"usage_limit": -1}}, "usage_limit: must not"),
        ({"problem": {}}, "missing required field nodes"),
    ],
)
def test_a_broken_problem_is_refused(tmp_path, problem, message):
    with pytest.raises(SituateError, match=message) as error:
        read_sharding_problem(write(tmp_path / "a.json", problem))
    assert str(tmp_path / "a.json") in str(error.value)
    assert "\n" not in str(error.value)


def test_usages_that_together_exceed_64_bits_are_refused(tmp_path):
    many = nodes(intervals=[[0, 1]] * 3, costs=[[1]] * 3, usages=[[2**61]] * 3)
    with pytest.raises(SituateError, match="all ops together use more than"):
        read_sharding_problem(write(tmp_path / "a.json", many))


def test_a_truncated_file_is_refused(tmp_path):
    path = write(tmp_path / "a.json", content(random_problem(0)))
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(SituateError, match="not valid JSON"):
        read_sharding_problem(path)
