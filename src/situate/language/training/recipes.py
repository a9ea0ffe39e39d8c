"""Recipes of mixed precision: the tensors that a training step holds for each parameter.

Sources of the sizes, by recipe:

- `megatron`: Megatron-LM, `megatron/core/optimizer` and its `docs/source/api-guide/dist_optimizer`:
  bfloat16 weights, float32 gradients (`accumulate_allreduce_grads_in_fp32`), float32 masters and
  moments: 18 bytes, or 6 + 12/d with the distributed optimiser.
- `fsdp2`: `torch.distributed.fsdp.MixedPrecisionPolicy(param_dtype=bfloat16,
  reduce_dtype=float32)`: sharded float32 weights, gradients and moments; bfloat16 weights while a
  layer computes. torchtitan's default.
- `deepspeed`: ZeRO (arXiv:1910.02054, section 3.1): 2 + 2 + 12 bytes; `bf16` with float32
  accumulation has another 4.
- `amp`: `torch.autocast` over float32 weights: the weights are cast anew in each forward pass.
- `pure`: all states in the type of the weights, as `model.to(bfloat16)` makes them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

from situate.errors import SituateError, nearest
from situate.files.contents import one_line
from situate.language.training.software import SOFTWARE, Software

Moment = Literal["none", "float32", "bfloat16", "8-bit"]

MOMENT_BYTES = {"none": 0.0, "float32": 4.0, "bfloat16": 2.0, "8-bit": 1 + 4 / 256}
"""Bytes of an element; 8-bit states have a float32 scale for each 256 (arXiv:2110.02861)."""


@dataclass(frozen=True)
class Optimizer:
    """An optimiser.

    Attributes:
        name: in options.
        moments: of each parameter.
        moment: their type.
        factored: the second moment is a row and a column (Adafactor, arXiv:1804.04235).
        end_moments: of each parameter of the embedding and the output, if they differ.
        whole: the update needs whole tensors, so that ZeRO-1 divides none.
    """

    name: str
    moments: int
    moment: Moment
    factored: bool = False
    end_moments: int | None = None
    whole: bool = False

    @property
    def bytes(self) -> float:
        """Bytes of the moments of a parameter."""
        return self.moments * MOMENT_BYTES[self.moment]

    @property
    def end_bytes(self) -> float:
        """Bytes of the moments of a parameter of the embedding or the output."""
        moments = self.moments if self.end_moments is None else self.end_moments
        return moments * MOMENT_BYTES[self.moment]


OPTIMIZERS = {
    optimizer.name: optimizer
    for optimizer in (
        Optimizer("adamw", 2, "float32"),
        Optimizer("adamw-bf16", 2, "bfloat16"),
        Optimizer("adamw8bit", 2, "8-bit"),
        Optimizer("adafactor", 0, "none", factored=True),
        Optimizer("muon", 1, "float32", end_moments=2, whole=True),
        Optimizer("lion", 1, "float32"),
        Optimizer("momentum", 1, "float32"),
        Optimizer("sgd", 0, "none"),
    )
}
"""Optimisers by name. Muon (github.com/KellerJordan/Muon) has one moment for matrices, and Adam
updates the embedding and the output."""


@dataclass(frozen=True)
class Recipe:
    """The bytes of each state of a parameter, and the software that has them.

    Attributes:
        name: in options.
        precision: of matrix products.
        optimizer: with its moments.
        weight, gradient, master: bytes of an element between steps; 0 if there is none.
        gathered: bytes of a weight while a layer computes with it, if ZeRO-3 divides it.
        zero: ZeRO's stage where a layout does not say.
        software: the program.
    """

    name: str
    precision: str
    optimizer: Optimizer
    weight: float
    gradient: float
    master: float
    gathered: float
    zero: int
    software: Software

    @property
    def product_type(self) -> str:
        """The type of matrix products, as keys of cluster files call it."""
        return PRECISIONS[self.precision]


PRECISIONS = {
    "bf16": "bfloat16",
    "fp16": "float16",
    "fp8": "float8_e4m3fn",
    "fp8-rowwise": "float8_rowwise",
    "fp4": "float4_e2m1fn",
    "fp32": "float32",
    "tf32": "tfloat32",
}
"""Types of matrix products by their name in options; `fp8` scales whole tensors, or blocks."""

_ADAMW = OPTIMIZERS["adamw"]

RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("megatron", "bf16", _ADAMW, 2, 4, 4, 2, 1, SOFTWARE["megatron"]),
        Recipe("fsdp2", "bf16", _ADAMW, 4, 4, 0, 2, 3, SOFTWARE["torchtitan"]),
        Recipe("deepspeed", "bf16", _ADAMW, 2, 2, 4, 2, 2, SOFTWARE["deepspeed"]),
        Recipe("amp", "bf16", _ADAMW, 4, 4, 0, 2, 0, SOFTWARE["torch"]),
        Recipe("pure", "bf16", OPTIMIZERS["adamw-bf16"], 2, 2, 0, 2, 0, SOFTWARE["torch"]),
    )
}
"""Recipes by name."""


def find_recipe(name: str | None, precision: str | None, optimizer: str | None) -> Recipe:
    """The recipe of these names; None for the usual one.

    Raises:
        SituateError: a name does not exist, or the recipe excludes the precision.
    """
    recipe = RECIPES[_checked_name("recipe", name or "megatron", RECIPES)]
    if optimizer is not None:
        update = OPTIMIZERS[_checked_name("optimizer", optimizer, OPTIMIZERS)]
        if name == "pure" and update.moment == "float32":
            update = replace(update, moment="bfloat16")
        recipe = replace(recipe, optimizer=update)
    if precision is not None:
        _checked_name("precision", precision, PRECISIONS)
        recipe = _with_precision(recipe, precision)
    return recipe


def _with_precision(recipe: Recipe, precision: str) -> Recipe:
    if precision in ("fp32", "tf32"):
        if recipe.name == "pure":
            raise SituateError(f"recipe pure has 16-bit states: it excludes precision {precision}")
        # float32 weights are their own masters.
        return replace(recipe, precision=precision, weight=4, gradient=4, master=0, gathered=4)
    return replace(recipe, precision=precision)


def _checked_name(kind: str, name: str, names: Collection[str]) -> str:
    if name not in names:
        hint = nearest(name, names)
        raise SituateError(one_line(f"unknown {kind} {name[:40]!r}{hint}"))
    return name
