"""Recipes of mixed precision in captured steps."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from situate.data.slices import Slices  # noqa: E402
from situate.data.update_rule import RECIPES  # noqa: E402
from situate.errors import SituateError  # noqa: E402
from situate.torch_capture import Captures, capture  # noqa: E402
from situate.torch_capture.build import build_fake  # noqa: E402
from situate.torch_capture.tracing import joint  # noqa: E402
from situate.torch_capture.updates.recipes import (  # noqa: E402
    autocast,
    cast_model,
    check_cast,
    hold_masters,
    sum_in_float32,
    under_recipe,
)
from tests.runtime.models import MODELS  # noqa: E402


def ops_of(optimizer: str, slices: Slices | None = None, name: str = "towers") -> dict[str, Any]:
    graph = capture(MODELS[name], optimizer=optimizer, slices=slices)
    return {op.name: op for op in graph.ops}


# Roles.
def test_masters_with_moments_are_one_tensor_and_weights_and_gradients_others() -> None:
    ops = ops_of("adamw:recipe=megatron")
    count = 5 * 6
    assert (ops["left.weight"].persistent, ops["left.weight"].dtype) == (12 * count, "float32")
    assert ops["left.weight/weight"].dtype == "bfloat16"
    assert ops["left/addmm"].dtype == "bfloat16"
    assert ops["left.weight/gradient"].dtype == "float32"
    grouped = {name for name, op in ops.items() if op.group == "left.weight"}
    assert grouped == {"left.weight", "left.weight/adamw"}


@pytest.mark.parametrize(
    ("optimizer", "nbytes"),
    [
        ("adamw:recipe=pure", 2 + 4),
        ("adamw:recipe=amp", 4 + 8),
        ("adamw-bf16:recipe=megatron", 4 + 4),
        ("momentum:recipe=deepspeed", 4 + 4),
        ("sgd:recipe=fsdp2", 4),
    ],
)
def test_the_bytes_of_a_parameter(optimizer: str, nbytes: int) -> None:
    assert ops_of(optimizer)["left.weight"].persistent == nbytes * 5 * 6


def test_tied_weights_have_one_master_and_one_cast() -> None:
    ops = ops_of("adamw:recipe=megatron", name="tied")
    assert [name for name in ops if name.endswith("table.weight/weight")] == ["table.weight/weight"]


def test_slices_add_up_gradients_in_the_type_of_the_recipe() -> None:
    slices = Slices((1, 1))
    sums = {
        recipe: ops_of(f"adamw:recipe={recipe}", slices)["left.weight/add"].dtype
        for recipe in ("megatron", "deepspeed")
    }
    assert sums == {"megatron": "float32", "deepspeed": "bfloat16"}


def test_replicas_have_weights_of_their_own_and_share_a_single_master() -> None:
    """ZeRO is a placement: masters exist once, and each replica reads a weight in bfloat16."""
    ops = ops_of("adamw:recipe=megatron", Slices((1, 1), replicas=(1, 1), once=("left*",)))
    assert ops["left.weight/weight"].dtype == "bfloat16"
    assert "replica1/left.weight/weight" not in ops
    assert ops["replica1/right.weight/weight"].replica == 1


def test_captures_of_one_model_keep_recipes_apart() -> None:
    captures = Captures()
    graphs = [
        captures.capture(MODELS["towers"], optimizer=text)
        for text in ("adamw", "adamw:recipe=megatron", "adamw")
    ]
    assert graphs[0] == graphs[2] != graphs[1]


# The parts of a recipe.
def test_a_trace_without_masters_stays() -> None:
    trace = joint(build_fake(MODELS["towers"], "towers"), True, "towers")
    before = str(trace.graph)
    hold_masters(trace)
    assert str(trace.graph) == before
    count = len(trace.graph.nodes)
    sum_in_float32(trace)
    assert len(trace.graph.nodes) == count


def test_no_recipe_leaves_the_step() -> None:
    fake = build_fake(MODELS["towers"], "towers")
    assert under_recipe(fake, None) is fake


def test_buffers_and_parameters_are_cast_and_others_are_not() -> None:
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 3).double())
    cast_model(model)
    types = {name: value.dtype for name, value in model.state_dict().items()}
    assert types["0.running_mean"] is types["0.weight"] is torch.bfloat16
    assert types["0.num_batches_tracked"] is torch.int64
    assert types["1.weight"] is torch.float64


def test_inputs_follow_the_model() -> None:
    model = nn.Linear(3, 3)
    cast_model(model)
    assert model(torch.ones(2, 3)).dtype is torch.bfloat16
    assert model.double()(torch.ones(2, 3)).dtype is torch.float64


def test_a_call_under_autocast() -> None:
    model = nn.Linear(3, 3)
    assert autocast(model)(torch.ones(2, 3)).dtype is torch.bfloat16


# Refusals.
def low() -> Any:
    model, inputs, loss = MODELS["towers"]()
    model.left.to(torch.bfloat16)
    return model, inputs, loss


def test_a_weight_in_bfloat16_has_no_master() -> None:
    with pytest.raises(SituateError, match=r"recipe megatron: parameter 'left\.weight' is bf"):
        capture(low, optimizer="adamw:recipe=megatron")


def test_a_float32_model_is_not_in_bfloat16() -> None:
    with pytest.raises(SituateError, match="recipe pure: parameter 'weight' is float32: cast"):
        check_cast(nn.Linear(2, 2), RECIPES["pure"])
    check_cast(nn.Linear(2, 2), RECIPES["amp"])
