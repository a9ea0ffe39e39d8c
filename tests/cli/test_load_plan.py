"""A plan with its model, ready to run."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from situate.cli.load_plan import LoadedPlan, load_plan  # noqa: E402
from situate.errors import SituateError  # noqa: E402
from tests.cli.commands.plans import write_plan  # noqa: E402

SOURCE = """
import torch

def listed():
    print("building")
    model = torch.nn.Linear(3, 1)
    return model, [torch.randn(2, 3)], lambda model, x: model(x).sum()

def failing():
    return 1 / 0

def nothing():
    pass
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder with a module of the user's own and a plan for one of its functions."""
    monkeypatch.chdir(tmp_path)
    name = f"own_{tmp_path.name}"
    Path(f"{name}.py").write_text(SOURCE)
    write_plan(tmp_path, f"{name}:listed")
    return name


def read(model: str, plan: str | None = None, **changes: object) -> LoadedPlan:
    options = {"cluster": "pair.toml", "costs": None, "optimizer": None, "seed": 0} | changes
    return load_plan(model, plan, **options)  # type: ignore[arg-type]


# The model is built as the user builds it.
def test_inputs_in_a_list_are_run_like_a_tuple(here):
    loaded = read("plan.json")
    assert isinstance(loaded.inputs, tuple)
    expected = loaded.loss(loaded.model, *loaded.inputs).detach()
    with loaded.default_step() as step:
        assert torch.equal(step(*loaded.inputs), expected)


def test_weights_and_inputs_are_of_the_seed(here):
    one, same, other = (read("plan.json", seed=seed) for seed in (0, 0, 1))
    assert torch.equal(one.inputs[0], same.inputs[0])
    assert torch.equal(one.model.weight, same.model.weight)
    assert not torch.equal(one.inputs[0], other.inputs[0])
    assert not torch.equal(one.model.weight, other.model.weight)


# Bad input is one line.
@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("cifar_cnn", "^cifar_cnn: give the plan too"),
        ("no.json", "^no.json: no such file"),
    ],
)
def test_a_model_alone_is_no_plan(here, model, says):
    with pytest.raises(SituateError, match=says):
        read(model)


def test_what_a_function_prints_is_not_the_answer(here, capsys):
    read("plan.json")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "building" in captured.err


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("failing", "building the model: .*ZeroDivisionError"),
        ("nothing", "must return .model, inputs, loss.*got NoneType"),
    ],
)
def test_a_function_that_builds_nothing_is_one_line(here, function, says):
    with pytest.raises(SituateError, match=f"{function}: {says}") as caught:
        read(f"{here}:{function}", "plan.json")
    assert "\n" not in str(caught.value)


# The optimiser belongs to the plan.
def test_the_optimizer_is_the_plans(here):
    loaded = read("plan.json")
    assert str(loaded.rule) == "sgd"
    assert isinstance(loaded.optimizer(list(loaded.model.parameters())), torch.optim.SGD)


def test_another_optimizer_is_another_graph(here):
    with pytest.raises(
        SituateError, match="the plan is for optimizer sgd, the one given is adam: "
    ):
        read("plan.json", optimizer="adam")


def test_inference_has_no_optimizer(here, tmp_path):
    write_plan(tmp_path, f"{here}:listed:inference")
    assert read("plan.json").rule is None
    with pytest.raises(SituateError, match="inference has no update"):
        read("plan.json", optimizer="sgd")
