"""PipeDream's profiles become training steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from situate.errors import ReadError
from situate.readers import pipedream, read
from tests.readers.allocated import peak_bytes

PROFILES = Path(__file__).parent.parent / "instances" / "pipedream-profiles"

FIGURES = "forward_compute_time={}, backward_compute_time={}, activation_size={}, parameter_size={}"


def layer(node: str, what: str, *figures: object) -> str:
    return f"{node} -- {what} -- {FIGURES.format(*figures)}\n"


SMALL = (
    layer("node1", "Input0", 0.0, 0.0, 100.0, 0.0)
    + layer("node2", "LSTM(8, 8) -- twice", 2.0, 4.0, "[60.0; 30.5]", 400.0)
    + layer("node3", "__getitem__(0)", 0.0, 0.0, 60.0, 0.0)
    + layer("node4", "Linear(8, 4)", 1.0, 3.0, 20.0, 300.0)
    + "\tnode1 -- node2\n\tnode2 -- node3\n\tnode3 -- node4\n"
).encode()


def small():
    graph = pipedream.read(SMALL, "small")
    return graph, {op.name: op for op in graph.ops}, {t.name: t for t in graph.tensors}


def test_a_layer_is_an_op_forward_and_an_op_backward():
    _, ops, _ = small()
    assert ops["node2/LSTM"].seconds == {"*": 0.002}
    assert ops["node2/LSTM/backward"].seconds == {"*": 0.004}
    assert ops["node2/LSTM"].persistent == 400
    assert ops["node2/LSTM/backward"].persistent == 0
    assert (ops["node2/LSTM"].phase, ops["node2/LSTM/backward"].phase) == ("forward", "backward")
    assert ops["node2/LSTM"].module == "LSTM(8, 8) -- twice"


def test_a_layer_shares_a_device_and_a_getitem_sits_with_its_producer():
    _, ops, _ = small()
    picked = {
        "node2/LSTM",
        "node2/LSTM/backward",
        "node3/__getitem__",
        "node3/__getitem__/backward",
    }
    assert {name for name, op in ops.items() if op.group == "node2"} == picked


def test_an_input_has_nothing_to_do_backward():
    _, ops, tensors = small()
    assert "node1/Input0/backward" not in ops
    assert "node2/LSTM/gradient/node1" not in tensors


def test_an_activation_is_kept_for_its_own_backward_op():
    graph, _, tensors = small()
    consumers = [graph.ops[op].name for op in tensors["node2/LSTM"].consumers]
    assert consumers == ["node3/__getitem__", "node2/LSTM/backward"]
    assert tensors["node2/LSTM"].size == 60 + 31


def test_a_gradient_has_the_size_of_its_activation():
    graph, _, tensors = small()
    gradient = tensors["node4/Linear/gradient/node3"]
    assert gradient.size == 60
    assert graph.ops[gradient.producer].name == "node4/Linear/backward"
    assert [graph.ops[op].name for op in gradient.consumers] == ["node3/__getitem__/backward"]


def test_the_plan_behind_a_profile_is_ignored():
    staged = SMALL.replace(b"parameter_size=300.0", b"parameter_size=300.0 -- stage_id=1")
    assert pipedream.read(staged, "small") == pipedream.read(SMALL, "small")


@pytest.mark.parametrize("path", sorted(PROFILES.glob("*.graph.txt")), ids=lambda path: path.name)
def test_times_and_parameters_of_real_profiles_add_up(path):
    graph = read(path)
    lines = [line for line in path.read_text().splitlines() if "_compute_time" in line]
    figures = [dict(f.split("=") for f in line.split(" -- ")[-1].split(", ")) for line in lines]
    keys = ("forward_compute_time", "backward_compute_time")
    seconds = sum(float(f[key]) for f in figures for key in keys) / 1000
    assert sum(op.seconds["*"] for op in graph.ops) == pytest.approx(seconds)
    assert sum(op.persistent for op in graph.ops) == sum(
        float(f["parameter_size"]) for f in figures
    )
    assert sum(op.phase == "forward" for op in graph.ops) == len(lines)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "\tnode1 -- node2",
            "\tnode1 -- nod2",
            "line 5: unknown layer 'nod2'; did you mean 'node2'",
        ),
        ("node4 --", "node3 --", "line 4: two layers are called 'node3'"),
        ("forward_compute_time=2.0", "forward_compute_time=nan", "line 2: forward_compute_time"),
        ("=[60.0; 30.5]", "=[60.0; -1]", "line 2: activation_size"),
        ("=[60.0; 30.5]", "=", "line 2: activation_size"),
        (", parameter_size=400.0", "", "line 2: has no parameter_size"),
        ("\tnode1 -- node2", "node1", "line 5: is neither a layer nor an edge"),
    ],
)
def test_a_bad_line_is_named(old, new, message):
    with pytest.raises(ReadError, match=message):
        pipedream.read(SMALL.decode().replace(old, new, 1).encode(), "small")


def test_an_edge_that_is_listed_twice_is_one():
    assert pipedream.read(SMALL + b"\tnode1 -- node2\n", "small") == small()[0]


def test_a_line_without_figures_is_refused_however_long_it_is():
    line = f"node5 -- Linear -- {'a' * 500_000}"
    with pytest.raises(ReadError, match="line 8: has no activation_size, backward_compute_time"):
        pipedream.read(SMALL + line.encode(), "g")


def test_lines_that_say_nothing_are_not_kept():
    assert peak_bytes(lambda: pipedream.read(SMALL + b"\n" * 50_000, "")) < 150_000
