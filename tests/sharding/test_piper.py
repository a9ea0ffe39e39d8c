"""Files of Piper."""

from __future__ import annotations

import gzip
import json
import math

import pytest

from situate.errors import SituateError
from situate.sharding import is_sharding_problem, is_stage_problem, read_stage_problem
from tests.sharding.problems import content as sharding_content
from tests.sharding.problems import random_problem as random_sharding_problem
from tests.sharding.stage_problems import random_content, write


# Files are recognised by their content.
def test_a_problem_is_recognised(tmp_path):
    path = write(tmp_path / "a.json", random_content(0))
    assert is_stage_problem(path)
    assert not is_sharding_problem(path)


def test_so_is_one_that_is_packed(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(gzip.compress(json.dumps(random_content(0)).encode()))
    assert is_stage_problem(path)
    assert read_stage_problem(path).devices == 4


@pytest.mark.parametrize("data", [b"", b"{}", b'{"nodes": []}', b"\x1f\x8b\x00broken", b"\x00"])
def test_other_files_are_not(tmp_path, data):
    path = tmp_path / "a.json"
    path.write_bytes(data)
    assert not is_stage_problem(path)


def test_a_problem_of_the_contest_is_none(tmp_path):
    path = write(tmp_path / "a.json", sharding_content(random_sharding_problem(0)))
    assert not is_stage_problem(path)


def test_a_file_that_is_not_there_is_none(tmp_path):
    assert not is_stage_problem(tmp_path / "none")


# Reading keeps every number.
def test_numbers_are_read(tmp_path):
    content = random_content(1)
    problem = read_stage_problem(write(tmp_path / "net.json", content))
    assert (problem.name, problem.batches) == ("net", content["mbsInBatch"])
    for node in content["nodes"]:
        layer = problem.layers[node["id"]]
        assert layer.name == node["name"]
        for degree, rows in node["TMPCs"].items():
            for row, option in zip(rows, layer.options[int(degree)], strict=True):
                assert (option.name, option.seconds) == (row["id"], row["timePerSample"])
                assert option.fixed_bytes == row["memoryUsageB"]
    edge = content["edges"][0]
    assert problem.edges[edge["sourceId"], edge["destId"]] == edge["communicationCost"]


def test_other_keys_are_passed_over(tmp_path):
    content = random_content(0) | {"comment": "measured by hand"}
    content["nodes"][0]["color"] = 3
    assert read_stage_problem(write(tmp_path / "a.json", content)).devices == 4


# What is wrong is named with its place.
def option(**values):
    whole = {
        "id": "plain",
        "timePerSample": 1,
        "parameterSize": 1,
        "memoryUsageA": 1,
        "memoryUsageB": 1,
        "syncTimeFw": {},
        "syncTimeBw": {},
    }
    return whole | values


def layers(options=None, **values):
    nodes = [{"id": 3, "TMPCs": {"1": [option()]} if options is None else options}]
    whole = {"maxDevices": 2, "maxMemoryPerDevice": 9, "bandwidth": 1, "mbsInBatch": 1}
    return whole | {"nodes": nodes, "edges": []} | values


EDGE = {"sourceId": 3, "destId": 3, "communicationCost": 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (layers(nodes=[]), "nodes: there is no layer"),
        (layers(maxDevices=0), r"maxDevices: must be from 1 to 10,000, got 0"),
        (layers(maxDevices=10**9), "maxDevices: must be from 1 to 10,000"),
        (layers(maxDevices="two"), "maxDevices: expected int, got str"),
        (layers(mbsInBatch=0), "mbsInBatch: must be at least 1, got 0"),
        (layers(bandwidth=0), "bandwidth: must be above 0"),
        (layers(bandwidth=-1), "bandwidth: must be a number from 0 to 2"),
        (layers(maxMemoryPerDevice=0), "maxMemoryPerDevice: must be above 0"),
        (layers(maxMemoryPerDevice=1e300), r"maxMemoryPerDevice: must be .* got 1e\+300"),
        (layers(options={}), r"nodes\[0\]\.TMPCs: layer 3 has no option"),
        (layers(options={"1": []}), r"nodes\[0\]\.TMPCs: layer 3 has no option"),
        (layers(options={"0": [option()]}), r"nodes\[0\]\.TMPCs\.0: must be a number of devices"),
        (layers(options={"x": [option()]}), r"nodes\[0\]|expected int"),
        (layers(options={"1": [option(), option()]}), "two options have the same id"),
        (
            layers(options={"1": [option(timePerSample=-1)]}),
            r"nodes\[0\]\.TMPCs\.1\[0\]\.timePerSample: must be a number from 0",
        ),
        (
            layers(options={"1": [option(syncTimeFw={"5": 1})]}),
            "syncTimeFw: has no edge with layer 5",
        ),
        (layers(edges=[EDGE]), "edges: form a cycle through layer 3"),
        (layers(edges=[EDGE | {"destId": 4}]), r"edges\[0\]: there is no layer 4"),
        (layers(edges=[EDGE, EDGE]), r"edges\[1\]: from 3 to 3, as an edge before"),
        (
            layers(edges=[EDGE | {"communicationCost": -2}]),
            r"edges\[0\]\.communicationCost: must be a number from 0",
        ),
        (layers(nodes=layers()["nodes"] * 2), "nodes: two layers have the same id"),
        ({"maxDevices": 3}, "missing required field"),
    ],
)
def test_a_broken_problem_is_refused(tmp_path, content, message):
    with pytest.raises(SituateError, match=message) as error:
        read_stage_problem(write(tmp_path / "a.json", content))
    assert str(tmp_path / "a.json") in str(error.value)
    assert "\n" not in str(error.value)


def test_an_option_without_a_number_for_an_edge_is_refused(tmp_path):
    content = random_content(1)
    edge = content["edges"][0]
    source = next(node for node in content["nodes"] if node["id"] == edge["sourceId"])
    del source["TMPCs"]["1"][0]["syncTimeBw"][str(edge["destId"])]
    with pytest.raises(SituateError, match=f"has no number for layer {edge['destId']}"):
        read_stage_problem(write(tmp_path / "a.json", content))


def test_a_number_that_is_not_finite_is_refused(tmp_path):
    content = layers(options={"1": [option(timePerSample=math.inf)]})
    with pytest.raises(SituateError, match="not valid JSON"):
        read_stage_problem(write(tmp_path / "a.json", content))
