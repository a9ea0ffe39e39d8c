from __future__ import annotations

import dataclasses
import json
import warnings
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.errors import PlanError, SituateError
from situate.torch_capture import capture
from situate.writers.accelerate import device_map, map_schedule, moved_modules, write
from tests.report.handmade import chain, schedule
from tests.writers.dispatched.fake_devices import run_on_fake_devices


def problem_of(
    sizes: dict[str, int], kinds: tuple[str, ...] = ("gpu", "gpu"), memory: int | None = None
) -> Problem:
    """One op a module, which holds so many bytes; `#` and the text behind it tell ops apart."""
    ops = tuple(
        Op(name or "root", seconds={"*": 1.0}, persistent=size, module=name.partition("#")[0])
        for name, size in sizes.items()
    )
    devices = tuple(Device(f"{kind}{i}", kind=kind, memory=memory) for i, kind in enumerate(kinds))
    return Problem(Graph("g", ops), Cluster("c", devices, (Link("*", "*", 1.0),)))


def mapped(problem: Problem, placement: list[int]) -> dict[str, int | str]:
    return device_map(problem, schedule(problem, placement))


# Maps of modules to devices.
def test_modules_go_where_their_parameters_are() -> None:
    problem = problem_of({"a.x": 1, "a.y": 1, "b": 1})
    assert mapped(problem, [0, 1, 1]) == {"a.x": 0, "a.y": 1, "b": 1}


def test_what_is_below_one_path_and_on_one_device_is_one_entry() -> None:
    problem = problem_of({"a.x": 1, "a.y": 1, "b.x": 1, "b.y": 1})
    assert mapped(problem, [0, 0, 1, 1]) == {"a": 0, "b": 1}
    assert mapped(problem, [1, 1, 1, 1]) == {"": 1}


def test_a_module_with_parameters_of_its_own_and_below() -> None:
    problem = problem_of({"a": 1, "a.x": 1, "a.y": 1})
    assert mapped(problem, [0, 0, 1]) == {"a": 0, "a.x": 0, "a.y": 1}


def test_cpus_and_disks_have_names_and_accelerators_numbers() -> None:
    problem = problem_of({"a": 1, "b": 1, "c": 1, "d": 1}, ("cpu", "gpu", "disk", "gpu"))
    assert mapped(problem, [0, 1, 2, 3]) == {"a": "cpu", "b": 0, "c": "disk", "d": 1}


# Warnings about the difference between plan and map.
def test_a_split_module_goes_where_most_bytes_are_and_is_named(tmp_path: Path) -> None:
    problem = problem_of({"a#w": 1, "a#v": 9, "b": 1})
    plan = schedule(problem, [0, 1, 0])
    assert device_map(problem, plan) == {"a": 1, "b": 0}
    assert moved_modules(problem, plan, device_map(problem, plan)) == ["a"]
    with pytest.warns(UserWarning, match=r"plan in 1 module \(a\)|of the map: predicted step"):
        write(problem, plan, tmp_path / "map.json")
    assert json.loads((tmp_path / "map.json").read_bytes()) == {"a": 1, "b": 0}


def test_a_map_that_does_not_fit_says_so_with_what_it_comes_to(tmp_path: Path) -> None:
    """The halves of a module that goes whole fit, and the whole on no device."""
    problem = problem_of({"a#w": 6, "a#v": 5, "b": 1}, memory=9)
    plan = schedule(problem, [0, 1, 0])
    assert plan.feasible(problem)
    with pytest.warns(UserWarning, match=r"of the map") as message:
        write(problem, plan, tmp_path / "map.json")
    lines = [str(warning.message) for warning in message]
    step = "predicted step 2.00 s (the plan's 2.00 s)"
    assert lines[1:] == [
        f"of the map: {step}; memory gpu0 1 B (7 B), gpu1 11 B (5 B)",
        "the map does not fit: gpu1 by 2 B",
    ]
    result = map_schedule(problem, {"a": 1, "b": 0}, plan)
    assert result is not None
    assert result.overflow(problem).tolist() == [0, 2]


def test_inputs_that_the_model_has_to_bring_are_said(tmp_path: Path) -> None:
    """Where labels met the results on the first device, the map would be far from the plan."""
    ops = (
        Op("x", "input", seconds={"*": 0.0}),
        Op("labels", "input", seconds={"*": 0.0}),
        Op("a", seconds={"*": 1.0}, persistent=10, module="a"),
        Op("b", seconds={"*": 1.0}, persistent=10, module="b"),
        Op("cross_entropy", seconds={"*": 0.0}),
    )
    tensors = (Tensor("t0", 0, 8, (2,)), Tensor("t1", 1, 8, (4,)), Tensor("t2", 2, 8, (3,)))
    graph = Graph("g", ops, (*tensors, Tensor("t3", 3, 8, (4,))))
    problem = Problem(graph, problem_of({"a": 1}).cluster)
    plan = schedule(problem, [0, 0, 0, 1, 1])
    assert device_map(problem, plan) == {"a": 0, "b": 1}
    with pytest.warns(UserWarning, match=r"the model has to bring inputs, such as labels"):
        write(problem, plan, tmp_path / "map.json")


def test_whole_modules_raise_no_warning(tmp_path: Path) -> None:
    problem = problem_of({"a": 1, "b": 1})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write(problem, schedule(problem, [0, 1]), tmp_path / "map.json")


# Graphs that cannot have a map.
def test_a_graph_without_parameters_is_an_error() -> None:
    problem = problem_of({"a": 0})
    with pytest.raises(PlanError, match="no parameters with a module path"):
        mapped(problem, [0])


@pytest.mark.parametrize(
    ("source", "module", "is_known"),
    [
        ("pytorch", "", True),
        ("situate", "a", True),
        ("situate", "", False),
        ("dnn-partitioning", "", False),
        ("onnx", "model/layers.0", False),
        ("pipedream", "Conv2d(3, 64)", False),
        ("costgraph", "scope/a", False),
    ],
)
def test_only_graphs_with_the_names_of_pytorch_modules_have_a_map(
    source: str, module: str, is_known: bool
) -> None:
    problem = problem_of({module: 1})
    graph = dataclasses.replace(problem.graph, source=source)
    problem = Problem(graph, problem.cluster)
    if is_known:
        assert mapped(problem, [1]) == {"": 1}
    else:
        with pytest.raises(PlanError, match="captured from PyTorch"):
            mapped(problem, [1])


def test_a_split_outermost_module_has_a_word(tmp_path: Path) -> None:
    problem = problem_of({"#w": 1, "#v": 9, "a": 1})
    with pytest.warns(UserWarning, match=r"1 module \(the outermost\)|of the map"):
        write(problem, schedule(problem, [0, 1, 0]), tmp_path / "map.json")


def test_an_unwritable_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SituateError, match="cannot write"):
        write(chain(1), schedule(chain(1), [0]), tmp_path / "missing" / "map.json")


def network() -> tuple[Any, Any]:
    """A small language model with residual blocks, batch norm's buffers, a buffer and a parameter
    of its own, and an output layer tied to the embedding; and its input."""
    torch = pytest.importorskip("torch")
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.norm, self.down = nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 8)

        def forward(self, x: Any) -> Any:
            return x + self.down(self.norm(self.up(x)).relu())

    class Body(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(11, 8), nn.Embedding(5, 8)
            self.register_buffer("numbers", torch.arange(5))
            self.register_buffer("counter", torch.zeros(1), persistent=False)
            self.layers = nn.ModuleList(Block() for _ in range(4))

        def forward(self, tokens: Any) -> Any:
            x = (self.words(tokens) + self.places(self.numbers)).sum(1)
            for layer in self.layers:
                x = layer(x)
            return x

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.drop = Body(), nn.Dropout()
            self.head = nn.Linear(8, 11, bias=False)
            self.head.weight = self.body.words.weight

        def forward(self, tokens: Any) -> Any:
            return self.head(self.drop(self.body(tokens)))

    torch.manual_seed(0)
    return Model().eval(), torch.randint(11, (3, 5))


@pytest.fixture(scope="module")
def captured() -> Graph:
    """The network's training step; every op takes a second."""
    model, tokens = network()
    graph = capture(lambda: (model, (tokens,), lambda m, t: m(t).sum()), name="network")
    ops = tuple(msgspec.structs.replace(op, seconds={"*": 1.0}) for op in graph.ops)
    return dataclasses.replace(graph, ops=ops)


def random_device_map(graph: Graph, devices: int, seed: int) -> dict[str, int | str]:
    """The map of a plan that places parameters and ops at random."""
    gpus = tuple(Device(f"gpu{i}") for i in range(devices))
    problem = Problem(graph, Cluster("c", gpus, (Link("*", "*", 1.0),)))
    of_unit = np.random.default_rng(seed).integers(devices, size=problem.units)
    return mapped(problem, of_unit[problem.unit].tolist())


# Maps on accelerate's own dispatch: they cover the model, run, and compute the same.
@pytest.mark.parametrize("seed", range(8))
def test_any_plan_gives_a_map_that_covers_the_model_and_runs(captured: Graph, seed: int) -> None:
    """No module gets inputs from two devices, and no parameter or buffer is without a place."""
    pytest.importorskip("accelerate")
    from accelerate.utils import check_device_map

    model, tokens = network()
    result = random_device_map(captured, 3, seed)
    assert len(set(result.values())) > 1
    own = result.keys() - dict(model.named_modules()).keys()
    assert own <= model.state_dict().keys()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "The following device_map keys do not match any submod")
        check_device_map(model, dict(result))
    assert run_on_fake_devices(model, result, tokens).shape == (3, 11)


def masked() -> tuple[Any, Any]:
    """A model that hands a mask of its own to its blocks and masks their results with an input;
    and its inputs."""
    torch = pytest.importorskip("torch")
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.down = nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x: Any, mask: Any) -> Any:
            return self.down(self.up(x) * mask)

    class Body(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.layers = nn.Linear(8, 8), nn.ModuleList(Block() for _ in range(3))

        def forward(self, x: Any) -> Any:
            x = self.first(x)
            mask = torch.arange(8, device=x.device) < 5
            for layer in self.layers:
                x = layer(x, mask)
            return x

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = Body(), nn.Linear(8, 3)

        def forward(self, x: Any, keep: Any) -> Any:
            return self.head(self.body(x) * keep)

    torch.manual_seed(0)
    return Model(), (torch.randn(2, 8), torch.ones(2, 8))


def test_what_is_masked_runs_too() -> None:
    pytest.importorskip("accelerate")
    model, inputs = masked()
    graph = capture(lambda: (model, inputs, lambda m, x, y: m(x, y).sum()), name="masked")
    ops = tuple(msgspec.structs.replace(op, seconds={"*": 1.0}) for op in graph.ops)
    maps = [random_device_map(dataclasses.replace(graph, ops=ops), 3, seed) for seed in range(8)]
    assert max(len(set(result.values())) for result in maps) == 3
    for result in maps:
        assert run_on_fake_devices(model, result, *inputs).shape == (2, 3)


def test_a_map_that_splits_a_residual_block_does_not_run() -> None:
    """The test above relies on this."""
    pytest.importorskip("accelerate")
    model, tokens = network()
    split = {"body": 0, "body.layers.1.down": 1, "drop": 0, "head": 0}
    with pytest.raises(RuntimeError, match="same device"):
        run_on_fake_devices(model, split, tokens)


def test_tied_parameters_share_a_device(captured: Graph) -> None:
    maps = [random_device_map(captured, 3, seed) for seed in range(4)]
    assert len({place_of(result, "head") for result in maps}) > 1
    assert all(place_of(result, "head") == place_of(result, "body.words") for result in maps)


def place_of(expected: dict[str, int | str], module: str) -> int | str:
    """The place of the nearest path above."""
    parts = module.split(".")
    paths = [".".join(parts[:i]) for i in range(len(parts), -1, -1)]
    return next(expected[path] for path in paths if path in expected)


def test_the_dispatched_model_computes_the_same(captured: Graph, tmp_path: Path) -> None:
    """On the CPU and the disk, which every machine has; accelerate cannot have tied parameters on
    the disk."""
    torch = pytest.importorskip("torch")
    accelerate = pytest.importorskip("accelerate")
    model, tokens = network()
    expected = model(tokens)
    devices = random_device_map(captured, 2, 0)
    tied = place_of(devices, "head")
    results = {path: "cpu" if place == tied else "disk" for path, place in devices.items()}
    assert set(results.values()) == {"cpu", "disk"}
    dispatched = accelerate.dispatch_model(model, results, offload_dir=str(tmp_path))
    assert any(parameter.device.type == "meta" for parameter in dispatched.parameters())
    assert torch.equal(dispatched(tokens), expected)


def test_accelerate_refuses_a_map_that_misses_a_module() -> None:
    """The test above relies on this."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("accelerate")
    from accelerate.utils import check_device_map

    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    with pytest.raises(ValueError, match=r"1\.weight"):
        check_device_map(model, {"0": 0})
