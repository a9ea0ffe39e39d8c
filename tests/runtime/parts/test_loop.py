"""Placed steps in parts against a loop of the same parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from situate.data.cuts import parse_cuts  # noqa: E402
from situate.data.slices import parse  # noqa: E402
from situate.runtime.equality import Equality, UnplacedOptions, compare  # noqa: E402
from situate.runtime.hardware import RealDevice  # noqa: E402
from situate.runtime.programs.placed import place  # noqa: E402
from situate.runtime.programs.program import Program, capture_program  # noqa: E402
from situate.runtime.step import PlacedStep  # noqa: E402
from tests.torch_capture.cuts.networks import NETWORKS, decoder  # noqa: E402

CUTS = {
    "decoder": ("heads=2", "features=3:1", "vocabulary=3", "sequence=4"),
    "slicing": ("heads=2", "features=2"),
    "dropping": ("features=2", "sequence=2", "batch=2"),
    "perceptron": ("features=3", "batch=2"),
    "dropping in attention": ("heads=2", "features=2"),
    "convolutions": ("channels=2", "vocabulary=2"),
    "recurrent": ("features=2", "vocabulary=2"),
    "routing": ("experts=2", "batch=2"),
}


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=0.01)


def placed_against_loop(
    build, texts, devices=2, seed=0, clip="", sums="chain", **options
) -> Equality:
    """The difference of three placed steps from a loop of their parts; every unit is on a device
    drawn at random."""
    model, inputs, loss = build()
    cuts = parse_cuts(texts, sums)
    name = f"tests.{build.__name__}"
    program = capture_program(
        model, inputs, loss, optimizer=f"adamw{clip}", name=name, cuts=cuts, **options
    )
    placement = _drawn(program, devices, seed)
    machine = [RealDevice(f"cpu:{d}", "cpu", 1) for d in range(devices)]

    def step(own, optimizer):
        placed = place(program, placement, program.graph.order, devices)
        return PlacedStep(placed, own, optimizer, machine)

    reference = UnplacedOptions(program=program)
    return compare(model, inputs, loss, adamw, step, threads=1, unplaced=reference)


def _drawn(program: Program, devices: int, seed: int):
    generator, groups = np.random.default_rng(seed), {}
    return np.array(
        [
            groups.setdefault(op.group or k, generator.integers(devices))
            for k, op in enumerate(program.graph.ops)
        ],
        np.int32,
    )


# To the last bit, wherever parts run.
@pytest.mark.parametrize("name", NETWORKS)
def test_a_placed_step_equals_the_loop_of_its_parts(name) -> None:
    equality = placed_against_loop(NETWORKS[name], CUTS[name])
    assert equality.within(0.0)
    assert equality.changed


@pytest.mark.parametrize(
    "options",
    [
        {"slices": parse("2")},
        {"slices": parse("2", replicas="2"), "devices": 3},
        {"recompute": ("layers.*",)},
        {"clip": ":clip=0.1"},
        {"sums": "tree"},
    ],
    ids=["slices", "replicas", "recompute", "clip", "tree"],
)
def test_parts_go_with_slices_replicas_recompute_clipping_and_trees(options) -> None:
    cuts = ("heads=4", "features=4", "vocabulary=2")
    assert placed_against_loop(decoder, cuts, **options).within(0.0)


# The model and its optimiser hold whole parameters, which the parts are views of.
def test_the_optimizer_counts_the_updates_of_a_parameter_in_parts() -> None:
    model, inputs, loss = decoder()
    cuts = parse_cuts(["features=2"])
    program = capture_program(
        model, inputs, loss, optimizer="adamw", name="tests.decoder", cuts=cuts
    )
    placed = place(program, np.zeros(len(program.graph.ops), np.int32), program.graph.order, 1)
    optimizer = adamw(model.parameters())
    with PlacedStep(placed, model, optimizer, [RealDevice("cpu", "cpu", 1)]) as step:
        before = model.layers[0].up.weight.clone()
        step(*inputs)
        step(*inputs)
    state = optimizer.state[model.layers[0].up.weight]
    assert state["step"] == 2
    assert state["exp_avg"].shape == before.shape
    assert (model.layers[0].up.weight != before).any(dim=1).all()


def test_an_interrupted_update_of_parts_is_undone() -> None:
    model, inputs, loss = decoder()
    cuts = parse_cuts(["heads=2"])
    program = capture_program(
        model, inputs, loss, optimizer="adamw", name="tests.decoder", cuts=cuts
    )
    placed = place(program, _drawn(program, 2, 0), program.graph.order, 2)
    machine = [RealDevice(f"cpu:{d}", "cpu", 1) for d in range(2)]
    with PlacedStep(placed, model, adamw(model.parameters()), machine) as step:
        before = {name: value.clone() for name, value in model.state_dict().items()}
        for number in placed.parts:
            entry = step._common.state[number]
            entry.keep(1)
            entry.value.add_(1.0)
        changed = {n for n, value in model.state_dict().items() if (value != before[n]).all()}
        assert changed == {n for n in before if "qkv" in n or n.endswith("out.weight")}
        step._give_up(1)
        assert all(torch.equal(value, before[n]) for n, value in model.state_dict().items())


# Tensors that a loss makes are constants of the trace, which are in no module.
def weighted() -> Any:
    model, inputs, _ = NETWORKS["perceptron"]()

    def loss(m, x, y):
        weight = torch.tensor([1.0, 2.0, 3.0, 4.0])
        return ((m(x) - y).square() * weight).mean()

    return model, inputs, loss


def test_constants_of_several_numbers_are_read() -> None:
    assert placed_against_loop(weighted, ("features=2",)).within(0.0)


# Experts of transformers are grouped products, whose inner dimension is cut.
def experts() -> Any:
    from transformers import MixtralConfig, MixtralForCausalLM

    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "vocab_size": 32}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    config = MixtralConfig(**sizes, **heads, num_local_experts=4, num_experts_per_tok=2)
    tokens = torch.randint(32, (2, 8))
    return MixtralForCausalLM(config), (tokens, tokens), lambda m, x, y: m(x, labels=y).loss


def test_experts_in_groups_are_cut_along_their_features() -> None:
    pytest.importorskip("transformers")
    assert placed_against_loop(experts, ("heads=2", "features=2")).within(0.0)
