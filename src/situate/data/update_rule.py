"""The update rule of a step, as commands name it: `adamw`, or `adamw:recipe=megatron,clip=1.0`."""

from __future__ import annotations

import math
from dataclasses import dataclass

from situate.errors import SituateError, nearest
from situate.validation import check

OPTIMIZERS: dict[str, int] = {
    "sgd": 2,
    "momentum": 4,
    "adam": 12,
    "adamw": 14,
    "adamw-bf16": 18,
    "adamw8bit": 60,
    "adafactor": 14,
    "muon": 14,
}
"""By optimiser: arithmetic operations for every parameter. `adamw8bit` searches codes of 8 bits;
the products of `muon` come besides (`torch_capture.updates.optimizer_state.update_flops`)."""

WHOLE = frozenset({"adamw8bit", "adafactor", "muon"})
"""Optimisers whose states belong to a whole parameter, not element by element."""

CLIP = "clip="
"""Prefix of the largest norm, in the text of a rule and in the names of ops that clip."""

_RECIPE = "recipe="


@dataclass(frozen=True)
class Recipe:
    """A way to train in bfloat16.

    Attributes:
        name: in options.
        is_cast: the forward and backward pass read weights in bfloat16.
        has_masters: the optimiser updates float32 weights, of which the step casts those of the
            passes.
        sums_float32: gradients of slices are cast to float32 before they are added up.
        is_autocast: the loss runs under `torch.autocast`.
    """

    name: str
    is_cast: bool = True
    has_masters: bool = True
    sums_float32: bool = False
    is_autocast: bool = False

    @property
    def casts_model(self) -> bool:
        """True if the model itself is in bfloat16."""
        return self.is_cast and not self.has_masters


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("megatron", sums_float32=True),
        Recipe("fsdp2", sums_float32=True),
        Recipe("deepspeed"),
        Recipe("amp", is_cast=False, has_masters=False, is_autocast=True),
        Recipe("pure", has_masters=False),
    )
}
"""Recipes by name, with the sources of `situate.language.training.recipes`.

Megatron-LM (`accumulate_allreduce_grads_in_fp32`) and FSDP2 (`reduce_dtype=torch.float32`) compute
the same numbers; they differ in when the weights of the passes exist.
"""


ABSENT = {
    "fp16": "its scaler of the loss skips updates with infinite gradients, and a step has no skip",
    "fp8": "PyTorch differentiates no product of float8 matrices (torch._scaled_mm)",
}
"""Reasons for which captured steps lack recipes that people ask for."""


@dataclass(frozen=True)
class UpdateRule:
    """An optimiser, and the recipe and the clipping of gradients before it.

    Attributes:
        kind: one of `OPTIMIZERS`.
        clip: the largest 2-norm of all gradients together; longer gradients are scaled down to it.
        recipe: of mixed precision; None for the types of the model.
    """

    kind: str
    clip: float | None = None
    recipe: Recipe | None = None

    def __str__(self) -> str:
        options = [f"{_RECIPE}{self.recipe.name}"] if self.recipe else []
        options += [] if self.clip is None else [f"{CLIP}{self.clip!r}"]
        return f"{self.kind}:{','.join(options)}" if options else self.kind


DEFAULT = UpdateRule("sgd")
"""Default rule of a captured step."""


def update_rule(text: str) -> UpdateRule:
    """The rule that a text names.

    Raises:
        SituateError: an unknown optimizer, recipe or option, or a norm that is not a positive
            number.
    """
    check(text, str, "optimizer")
    kind, colon, options = text.partition(":")
    if kind not in OPTIMIZERS:
        raise SituateError(f"unknown optimizer {kind!r}{nearest(kind, OPTIMIZERS)}")
    recipe, clip = None, None
    for option in options.split(",") if colon else ():
        if option.startswith(_RECIPE) and recipe is None:
            recipe = _recipe(option.removeprefix(_RECIPE))
        elif clip is None:
            clip = _norm(option, text)
        else:
            raise _bad_option(text)
    return UpdateRule(kind, clip, recipe)


def _recipe(name: str) -> Recipe:
    if name in ABSENT:
        raise SituateError(f"recipe {name}: {ABSENT[name]}: take amp, with bfloat16 products")
    if name not in RECIPES:
        raise SituateError(f"unknown recipe {name!r}{nearest(name, RECIPES)}")
    return RECIPES[name]


def _norm(option: str, text: str) -> float:
    try:
        norm = float(option.removeprefix(CLIP)) if option.startswith(CLIP) else math.nan
    except ValueError:
        norm = math.nan
    if not (math.isfinite(norm) and norm > 0):
        raise _bad_option(text)
    return norm


def _bad_option(text: str) -> SituateError:
    return SituateError(
        f"optimizer {text!r}: behind the colon stand a recipe and the largest norm of the "
        "gradients, a positive number, such as adamw:recipe=megatron,clip=1.0"
    )
