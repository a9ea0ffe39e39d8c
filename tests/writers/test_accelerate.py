from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

from situate.cluster import Cluster, Device, Link
from situate.errors import PlanError, SituateError
from situate.graph import Graph, Op
from situate.problem import Problem
from situate.writers.accelerate import device_map, split_modules, write
from tests.report.handmade import chain, schedule


def problem_of(held: dict[str, int], kinds: tuple[str, ...] = ("gpu", "gpu")) -> Problem:
    """One op a module, which holds so many bytes; `#` and what follows tells ops apart."""
    ops = tuple(
        Op(name or "root", seconds={"*": 1.0}, persistent=size, module=name.partition("#")[0])
        for name, size in held.items()
    )
    devices = tuple(Device(f"{kind}{i}", kind=kind) for i, kind in enumerate(kinds))
    return Problem(Graph("g", ops), Cluster("c", devices, (Link("*", "*", 1.0),)))


def mapped(problem: Problem, placement: list[int]) -> dict[str, int | str]:
    return device_map(problem, schedule(problem, placement))


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


def test_a_split_module_goes_where_most_bytes_are_and_is_named(tmp_path: Path) -> None:
    problem = problem_of({"a#w": 1, "a#v": 9, "b": 1})
    plan = schedule(problem, [0, 1, 0])
    assert device_map(problem, plan) == {"a": 1, "b": 0}
    assert split_modules(problem, plan) == ["a"]
    with pytest.warns(UserWarning, match=r"splits 1 module over devices \(a\)"):
        write(problem, plan, tmp_path / "map.json")
    assert json.loads((tmp_path / "map.json").read_bytes()) == {"a": 1, "b": 0}


def test_whole_modules_raise_no_warning(tmp_path: Path) -> None:
    problem = problem_of({"a": 1, "b": 1})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write(problem, schedule(problem, [0, 1]), tmp_path / "map.json")


def test_a_graph_without_parameters_is_an_error() -> None:
    problem = problem_of({"a": 0})
    with pytest.raises(PlanError, match="no parameters with a module path"):
        mapped(problem, [0])


def test_an_unwritable_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SituateError, match="cannot write"):
        write(chain(1), schedule(chain(1), [0]), tmp_path / "missing" / "map.json")


def test_accelerate_takes_the_map_of_a_model() -> None:
    """Every parameter is covered, each by the place the plan gave its module, and it runs."""
    torch = pytest.importorskip("torch")
    accelerate = pytest.importorskip("accelerate")
    from accelerate.utils import check_device_map

    def block() -> object:
        return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))

    model = torch.nn.Sequential(block(), torch.nn.ReLU(), block(), torch.nn.Linear(4, 2))
    sizes: dict[str, int] = {}
    for name, parameter in model.named_parameters():
        module = name.rpartition(".")[0]
        sizes[module] = sizes.get(module, 0) + parameter.nbytes
    problem = problem_of(sizes, ("cpu", "gpu"))
    found = mapped(problem, [0, 0, 0, 1, 1])
    assert found == {"0": "cpu", "2.0": "cpu", "2.1": 0, "3": 0}
    check_device_map(model, found)

    on_this_machine = dict.fromkeys(found, "cpu")
    placed = accelerate.dispatch_model(model, on_this_machine, force_hooks=True)
    assert placed(torch.ones(3, 4)).shape == (3, 2)


def test_accelerate_refuses_a_map_that_misses_a_module() -> None:
    """What the test above relies on."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("accelerate")
    from accelerate.utils import check_device_map

    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    with pytest.raises(ValueError, match=r"1\.weight"):
        check_device_map(model, {"0": 0})
