"""From a plan to a step that runs; a plan for anything else is refused."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

torch = pytest.importorskip("torch")

from situate.data.cluster import Cluster  # noqa: E402
from situate.data.problem import Problem  # noqa: E402
from situate.data.rules import RULES  # noqa: E402
from situate.data.update_rule import UpdateRule  # noqa: E402
from situate.errors import PlanError, SituateError  # noqa: E402
from situate.results.plan import Plan  # noqa: E402
from situate.runtime.compile import build_model, cluster_of, compile  # noqa: E402
from situate.runtime.model_state.optimizers import default_optimizer  # noqa: E402
from situate.runtime.unplaced import UnplacedStep  # noqa: E402
from situate.solvers import solve  # noqa: E402
from situate.torch_capture import capture, capture_function  # noqa: E402
from situate.torch_capture.patches.named_devices import NamedDevices  # noqa: E402
from tests.runtime.models import MODELS, entropy  # noqa: E402
from tests.runtime.steps import TWO, assert_same, state, train  # noqa: E402


def plan_with_step(
    cluster: Cluster = TWO, rules: str = "situate", method: str = "single", **how: Any
) -> Plan:
    """For the two towers."""
    graph = capture(MODELS["towers"], name="towers", **how)
    return solve(Problem(graph, cluster, "time", RULES[rules]), method).plan


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_with_step()


def changed(**how: Any) -> tuple[Any, ...]:
    """The arguments of `compile`, some of it otherwise than it was planned."""
    model, inputs, loss = MODELS["towers"]()
    return how.get("model", model), how.get("inputs", inputs), how.get("loss", loss)


# Plans that run, on one device and on two.
def test_a_plan_is_run(plan: Plan) -> None:
    (model, inputs, loss), (copy, *_) = MODELS["towers"](), MODELS["towers"]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    copied = torch.optim.SGD(copy.parameters(), lr=0.1)
    with compile(plan, model, inputs, loss, optimizer=optimizer, cluster=TWO) as step:
        for k in range(1, 4):
            assert torch.equal(step(*inputs), train(copy, inputs, loss, copied, k))
    assert_same(state(model), state(copy))


@pytest.mark.skipif(sys.platform != "linux", reason="starts processes")
def test_a_plan_is_run_in_two_processes() -> None:
    plan = plan_with_step(method="random", optimizer="adamw")
    assert len(set(plan.placement.values())) == 2
    (model, inputs, loss), (copy, *_) = MODELS["towers"](), MODELS["towers"]()
    copied = torch.optim.AdamW(copy.parameters())
    with compile(plan, model, inputs, loss, cluster=TWO) as step:
        for k in range(1, 4):
            assert torch.equal(step(*inputs), train(copy, inputs, loss, copied, k))
        assert len(step.records) == 2
    assert_same(state(model), state(copy))


# The optimiser of a plan.
def test_the_planned_optimizer_is_the_default() -> None:
    plan = plan_with_step(optimizer="adamw")
    with compile(plan, *changed(), cluster=TWO) as step:
        assert type(step.optimizer) is torch.optim.AdamW
    assert plan.update_rule == UpdateRule("adamw")
    assert plan_with_step(training=False).optimizer == ""


def test_a_plan_that_does_not_say_its_optimizer_is_trained_by_gradient_descent(plan: Plan) -> None:
    with compile(replace(plan, optimizer=None), *changed(), cluster=TWO) as step:
        assert type(step.optimizer) is torch.optim.SGD


def test_the_plan_says_how_gradients_are_clipped() -> None:
    plan = plan_with_step(optimizer="sgd:clip=0.01")
    assert plan.update_rule == UpdateRule("sgd", 0.01)
    model, inputs, loss = changed()
    copied = copy.deepcopy(model)
    unplaced = UnplacedStep(
        copied, inputs, loss, default_optimizer("sgd", [*copied.parameters()]), clip=0.01
    )
    optimizer = default_optimizer("sgd", [*model.parameters()])
    with compile(plan, model, inputs, loss, optimizer=optimizer, cluster=TWO) as step:
        for _ in range(3):
            assert torch.equal(step(*inputs), *unplaced())
    assert_same(state(model), state(copied))


def other_model() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Linear(5, 3))


# Plans for other models, rules, devices or clusters.
@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"model": other_model()}, "'towers' is not what the plan was made for: .*: plan again"),
        (
            {"inputs": (torch.zeros(9, 6), torch.zeros(9).long())},
            "is not what the plan was made for",
        ),
        (
            {"inputs": (torch.zeros(8, 6).double(), torch.zeros(8).long())},
            "a product of float32 and float64 is asked for here",
        ),
        ({"inputs": (torch.zeros(8, 6),)}, r"'y' \(the step is loss\(model, \*inputs\)\)"),
        ({"inputs": 3}, "the inputs are"),
        ({"loss": lambda model, x, y: model(x)}, "must return one floating-point number"),
        (
            {"loss": lambda model, x, y: entropy(model, x, y) * 2},
            "is not what the plan was made for",
        ),
        ({"model": 3}, "the model is int"),
    ],
)
def test_another_model_than_planned_is_refused(
    plan: Plan, how: dict[str, Any], message: str
) -> None:
    with pytest.raises(SituateError, match=message) as error:
        compile(plan, *changed(**how), cluster=TWO)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda p: torch.optim.Adagrad(p),
            "optimizer Adagrad: .* torch.optim's SGD, Adam, AdamW, Adafactor and Muon",
        ),
        (lambda p: torch.optim.Adam(p, amsgrad=True), "optimizer Adam: leave amsgrad out"),
        (lambda p: torch.optim.AdamW(p), "the plan is for optimizer sgd, the one given is adamw"),
        (lambda p: torch.optim.SGD(p[:1], lr=0.1), "leaves out parameter"),
    ],
)
def test_an_optimizer_that_was_not_planned_is_refused(plan: Plan, make: Any, message: str) -> None:
    model, inputs, loss = changed()
    with pytest.raises(SituateError, match=message) as error:
        compile(plan, model, inputs, loss, optimizer=make(list(model.parameters())), cluster=TWO)
    assert "\n" not in str(error.value)


def test_a_plan_under_atomic_rules_is_refused() -> None:
    plan = plan_with_step(rules="dnn-partitioning")
    assert plan.decoder == "calls"
    with pytest.raises(PlanError, match="rules 'dnn-partitioning' is not run: plan with --rules"):
        compile(plan, *changed(), cluster=TWO)


def test_whether_a_plan_trains_does_not_depend_on_its_name() -> None:
    model, x = torch.nn.Linear(3, 2), torch.randn(4, 3)

    def build() -> Any:
        return torch.nn.Linear(3, 2), (x,), None

    graph = capture(build, training=False, name="mine")
    adam = solve(Problem(graph, TWO), "single").plan
    with compile(adam, model, (x,), None, cluster=TWO) as step, torch.no_grad():
        assert torch.equal(step(x), model(x))


def test_a_plan_for_devices_that_are_not_here_is_refused() -> None:
    plan = plan_with_step(Cluster.preset("k40-4"), method="random")
    with pytest.raises(SituateError, match=r"this machine has \d CUDA devices: .*discover"):
        compile(plan, *changed())


def test_a_plan_for_another_cluster_is_refused(plan: Plan) -> None:
    with pytest.raises(PlanError, match="made for cluster 'two', not for this 'k40-4'"):
        compile(plan, *changed(), cluster=Cluster.preset("k40-4"))


# Inputs, loss and cluster by default.
def test_the_planned_function_builds_what_is_not_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "planned_step.py").write_text("from tests.runtime.models import towers as build\n")
    graph = capture_function("planned_step:build")
    plan = solve(Problem(graph, TWO), "single").plan
    model, inputs, _ = build_model(plan, NamedDevices())
    with compile(plan, model, cluster=TWO) as step:
        assert step(*inputs).shape == ()
    unnamed = replace(plan, graph="towers")
    with pytest.raises(PlanError, match="'towers', which builds no model: give the inputs"):
        compile(unnamed, model, cluster=TWO)


def test_a_loss_that_is_given_is_kept_where_inputs_are_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def twice(model: Any, x: Any, y: Any) -> Any:
        return entropy(model, x, y) * 2

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "doubled.py").write_text("from tests.runtime.models import towers as build\n")
    model, inputs, _ = changed()
    graph = capture(lambda: (*changed()[:2], twice), name="doubled:build")
    expected = twice(model, *inputs).detach()
    with compile(solve(Problem(graph, TWO), "single").plan, model, loss=twice, cluster=TWO) as step:
        assert torch.equal(step(*inputs), expected)


def test_the_cluster_of_a_plan(plan: Plan) -> None:
    assert cluster_of(replace(plan, cluster="k40-4")).name == "k40-4"
    assert len(cluster_of(replace(plan, cluster="identical:3")).devices) == 3
    with pytest.raises(
        PlanError, match=r"cluster 'two'.*: pass it, such as cluster=situate.Cl.*FILE\)$"
    ):
        cluster_of(plan)
