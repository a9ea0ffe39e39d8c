"""The captured program of a real model, which stays unchanged, and the roles of its ops."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import pytest
from torch import Tensor, nn

torch = pytest.importorskip("torch")

from situate.errors import SituateError  # noqa: E402
from situate.runtime.programs.program import (  # noqa: E402
    Roles,
    capture_program,
)
from situate.torch_capture import capture  # noqa: E402
from tests.runtime.models import MODELS, Structured, entropy  # noqa: E402
from tests.runtime.steps import assert_same, program, state, step_of  # noqa: E402


# The parts of a program.
@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_left_as_it_is(training: bool) -> None:
    model, inputs, loss = MODELS["convolutional"]()
    model.train(not training)
    before, inputs_given = state(model), copy.deepcopy(inputs)
    identities = [id(tensor) for tensor in (*model.parameters(), *model.buffers())]
    random = torch.get_rng_state()
    capture_program(
        model, inputs if training else inputs[:1], loss if training else None, training=training
    )
    assert_same(state(model), before)
    assert [id(tensor) for tensor in (*model.parameters(), *model.buffers())] == identities
    assert torch.equal(torch.get_rng_state(), random)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert {module.training for module in model.modules()} == {not training}
    assert not any(module._forward_hooks for module in model.modules())
    assert all(torch.equal(a, b) for a, b in zip(inputs, inputs_given, strict=True))


@pytest.mark.parametrize("name", MODELS)
def test_the_graph_is_the_one_that_is_planned(name: str) -> None:
    assert (
        program(name, "adam").graph.hash == capture(MODELS[name], optimizer="adam", name=name).hash
    )


def test_every_trained_parameter_has_a_gradient_by_its_first_name() -> None:
    assert program("tied").gradients.keys() == {"table.weight", "norm.weight", "norm.bias"}
    trained = {"first.weight", "first.bias", "second.weight", "second.bias"}
    assert program("odd", "adamw").gradients.keys() == trained


def test_buffers_that_change_are_mutations() -> None:
    assert program("odd", "adamw").mutations.keys() == {"seen"}
    assert program("convolutional", "adam").mutations.keys() == {
        "1.running_mean",
        "1.running_var",
        "1.num_batches_tracked",
    }


def test_inference_has_neither_gradients_nor_mutations() -> None:
    model, inputs, _ = MODELS["convolutional"]()
    captured = capture_program(model, inputs[:1], None, training=False)
    assert (captured.gradients, captured.mutations, len(captured.results)) == ({}, {}, 1)
    assert not captured.training


def test_the_tensors_of_inputs_are_found_and_results_put_back() -> None:
    inputs = {"x": torch.randn(4, 3), "scale": torch.tensor(3.0)}
    captured = capture_program(Structured(), inputs, None, training=False)
    assert [id(t) for t in captured.separate(inputs)] == [id(t) for t in inputs.values()]
    one, other = torch.zeros(4, 2), torch.zeros(2, 4)
    assert captured.restore([one, other]) == {"pair": (one, other), "count": 3, "nothing": None}
    assert len(captured.inputs) == 2


class Decides(nn.Linear):
    """Looks at values."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) if x.sum() > 0 else x


class Selects(nn.Linear):
    """Its shapes depend on values."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x[x[:, 0] > 0])


# Models and steps that cannot be captured.
@pytest.mark.parametrize(
    ("kind", "remedy"), [(Decides, "torch.where"), (Selects, "a mask or a fixed")]
)
def test_a_step_that_depends_on_values_names_the_line(kind: Any, remedy: str) -> None:
    inputs_given = torch.randn(2, 3), torch.zeros(2).long()
    with pytest.raises(SituateError, match=rf"test_program.py:\d+: .*{remedy}") as error:
        capture_program(kind(3, 3), inputs_given, entropy, name="mine")
    assert str(error.value).startswith("mine: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("inputs_given", "message"),
    [
        ((3, (torch.zeros(1),), None), "the model is int"),
        ((nn.Linear(2, 2), (), None), "the inputs are tuple of 0"),
        ((nn.Linear(2, 2), (torch.zeros(1, 2),), 5), "the loss is int"),
        ((nn.Linear(2, 2), (torch.zeros(1, 3),), None), "must have same reduction dim"),
        ((nn.Linear(2, 2), (torch.zeros(1, 2),), None), r"tensor of shape \(1, 2\)"),
        ((nn.Linear(2, 2), (torch.zeros(1, 2),), lambda out: out), r"loss\(model, \*inputs\)"),
    ],
)
def test_a_step_that_does_not_train_is_refused(inputs_given: tuple[Any, ...], message: str) -> None:
    with pytest.raises(SituateError, match=message) as error:
        capture_program(*inputs_given, name="mine")
    assert "\n" not in str(error.value)


def test_an_unknown_optimizer_is_refused() -> None:
    with pytest.raises(SituateError, match="unknown optimizer 'adagrad'"):
        capture_program(*MODELS["towers"](), optimizer="adagrad")


def test_a_step_that_trains_nothing_is_refused() -> None:
    inputs_given = nn.Linear(3, 3), (torch.randn(2, 3),), lambda model, x: x.square().mean()
    with pytest.raises(SituateError, match="the loss depends on no parameter that takes a grad"):
        capture_program(*inputs_given)


def test_a_version_that_was_not_tested_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("situate.torch_capture.TESTED", "0.1")
    (warning,) = capture_program(*MODELS["towers"]()).graph.warnings
    assert "tested with 0.1" in warning


class Prompted(nn.Module):
    """Keeps tensors that are no buffers, in a dict and a list, as wrappers of models do."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.layer = nn.Embedding(3, 4), nn.Linear(4, 4)
        self.tokens = {"prompt": torch.arange(3)}
        self.scales = [torch.full((4,), 2.0)]

    def forward(self, x: Tensor) -> Tensor:
        prompt: Tensor = self.words(self.tokens["prompt"]).sum(0)
        out: Tensor = self.layer(x) * self.scales[0] + prompt
        return out


def test_tensors_in_containers_of_the_model_have_their_values_in_a_placed_step() -> None:
    torch.manual_seed(0)
    model, inputs = Prompted(), (torch.randn(2, 4),)

    def loss(model: nn.Module, x: Tensor) -> Tensor:
        captured: Tensor = model(x).square().mean()
        return captured

    used = loss(model, *inputs)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with step_of(capture_program(model, inputs, loss), model, optimizer, 1) as step:
        assert torch.equal(step(*inputs), used)


def roles(name: str, optimizer: str = "sgd") -> Roles:
    return Roles(program(name, optimizer))


# Roles and storages.
def test_roles_of_a_step_with_tied_weights() -> None:
    captured = roles("tied")
    counts = Counter(captured.of(op) for op in range(len(captured.program.nodes)))
    assert counts["state"] == counts["update"] == 3
    assert counts["input"] == 2
    assert counts["tangent"] == 1
    assert counts["copy"] == 0
    assert counts["compute"] > 5


def test_a_buffer_that_several_ops_touch_is_copied_at_the_end() -> None:
    captured = roles("odd", "adamw")
    copied = [
        captured.program.graph.ops[op].name
        for op in range(len(captured.program.nodes))
        if captured.of(op) == "copy"
    ]
    assert copied == ["seen/copy"]


@pytest.mark.parametrize("name", MODELS)
def test_every_used_storage_has_an_op(name: str) -> None:
    captured = roles(name, "adam")
    assert captured.used <= captured.owner.keys()
    for tensor in captured.program.graph.tensors:
        assert tensor.producer in set(captured.owner.values())


@pytest.mark.parametrize("name", MODELS)
def test_the_edges_of_the_graph_are_what_the_nodes_read(name: str) -> None:
    captured = roles(name, "adam")
    reads = captured.program.step.flow.reads
    edges = set(captured.program.graph.edges())
    for op, node in enumerate(captured.program.nodes):
        if captured.of(op) == "compute":
            owners = {captured.owner[storage] for storage in reads[node]}
            assert {(owner, op) for owner in owners} <= edges


def test_random_nodes_keep_the_order_of_the_unplaced_step() -> None:
    captured = roles("convolutional", "adam")
    names = [captured.program.graph.ops[captured.owner[node, 0]].name for node in captured.random]
    assert names == ["3/native_dropout", "6/native_dropout"]
    assert roles("towers").random == {}
