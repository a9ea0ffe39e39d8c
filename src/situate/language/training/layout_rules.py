"""Rules that a layout must keep: degrees that divide the model, and abilities of programs."""

from __future__ import annotations

from situate.errors import SituateError
from situate.language.training.layout import (
    H2,
    RECOMPUTE,
    SCHEDULES,
    V_CHUNKS,
    Run,
    V,
    group_size,
)
from situate.language.training.recipes import Recipe
from situate.language.training.transformer import Transformer

PREDICTION = "mtp needs recipe=megatron: other programs train no further predictions"
"""Why a recipe excludes multi-token prediction."""


def recomputations(model: Transformer, recipe: Recipe) -> tuple[str, ...]:
    """The kinds of recomputation that a program has for a model."""
    has_modules = recipe.name == "megatron" and (model.experts is not None or model.latent > 0)
    return RECOMPUTE if has_modules else RECOMPUTE[:-1]


def check_layout(run: Run, model: Transformer, devices: int) -> None:
    """Check that a model and so many devices allow a layout.

    Raises:
        SituateError: one line on the first degree at fault.
    """
    layout = run.layout
    if layout.devices != devices:
        fits = devices / (layout.tp * layout.cp * layout.pp)
        remedy = f": dp={int(fits)} fits" if fits >= 1 and fits == int(fits) else ""
        raise SituateError(
            f"--layout: dp {layout.dp} x tp {layout.tp} x cp {layout.cp} x pp {layout.pp} = "
            f"{layout.devices} devices, and the cluster has {devices} GPUs{remedy}"
        )
    for problem in _problems(run, model):
        raise SituateError(f"--layout: {problem}")


def _problems(run: Run, model: Transformer) -> list[str]:
    """All reasons for which a layout is impossible."""
    layout, recipe = run.layout, run.recipe
    is_v = layout.schedule == SCHEDULES[V]
    rest = layout.dp * layout.cp * layout.tp
    experts = model.experts.count if model.experts else 1
    rules = [
        (model.heads % layout.tp, f"tp {layout.tp} does not divide {model.heads} heads"),
        (
            model.kv_heads % layout.tp and layout.tp % model.kv_heads,
            f"tp {layout.tp} does not divide {model.kv_heads} heads of keys and values",
        ),
        (model.ffn % layout.tp, f"tp {layout.tp} does not divide the width {model.ffn}"),
        (
            layout.pp * layout.vp > model.layers,
            f"pp {layout.pp} x vp {layout.vp} is more than {model.layers} layers",
        ),
        (layout.vp > 1 and layout.pp == 1, "vp needs pp: one stage has nothing to interleave"),
        (
            layout.vp > 1 and model.layers % (layout.pp * layout.vp),
            f"pp {layout.pp} x vp {layout.vp} does not divide {model.layers} layers",
        ),
        (
            layout.vp > 1 and layout.count < layout.pp,
            f"vp needs at least pp {layout.pp} micro-batches, got {layout.count}",
        ),
        (
            layout.vp > 1 and not is_v and not group_size(layout.count, layout.pp),
            f"vp needs groups of at least pp {layout.pp} micro-batches: {layout.count} do not "
            f"divide into {layout.count // layout.pp}",
        ),
        (
            layout.late and layout.pp == 1,
            f"schedule={layout.schedule} needs pp: one stage never waits",
        ),
        (
            layout.late and layout.recompute != "none",
            f"schedule={layout.schedule} keeps activations for its late gradients of weights: "
            "recompute=none",
        ),
        (
            layout.late and layout.vp == 1 and not group_size(layout.count, layout.pp),
            f"schedule={layout.schedule} needs groups of at least pp {layout.pp} micro-batches: "
            f"{layout.count} do not divide",
        ),
        (
            is_v and layout.vp != V_CHUNKS,
            f"schedule={layout.schedule} has two chunks on each stage: vp={V_CHUNKS}",
        ),
        (
            layout.schedule == SCHEDULES[H2] and layout.vp > 1,
            f"schedule={layout.schedule} has one chunk on each stage: leave vp out",
        ),
        (
            run.sequence % (2 * layout.cp) and layout.cp > 1,
            f"2 x cp {layout.cp} does not divide {run.sequence} tokens",
        ),
        (
            layout.sp and run.sequence % (layout.tp * layout.cp),
            f"sp: tp {layout.tp} does not divide {run.sequence} tokens",
        ),
        (layout.sp and layout.tp == 1, "sp needs tp: it divides activations among its devices"),
        (layout.ep > 1 and model.experts is None, "ep needs experts, and the model is dense"),
        (experts % layout.ep, f"ep {layout.ep} does not divide {experts} experts"),
        (rest % (layout.ep * layout.etp), f"ep x etp does not divide dp x cp x tp = {rest}"),
        (
            layout.zero > 1 and layout.pp > 1 and recipe.name == "deepspeed",
            f"DeepSpeed's pipelines refuse zero={layout.zero}: take zero=1",
        ),
        (layout.zero == 3 and recipe.name == "megatron", "Megatron has no zero=3: recipe=fsdp2"),
        (layout.zero == 2 and recipe.name == "megatron", "Megatron has no zero=2: take zero=1"),
        (layout.shard and layout.zero == 0, "shard needs zero=1, 2 or 3"),
        (
            layout.shard and layout.dp % layout.shard,
            f"shard {layout.shard} does not divide dp {layout.dp}",
        ),
        (
            layout.shard and layout.ep > layout.shard * layout.cp * layout.tp,
            f"ep {layout.ep} is more than shard x cp x tp",
        ),
        (layout.mtp and not recipe.software.predicts, PREDICTION),
        (
            layout.recompute not in recomputations(model, recipe),
            "recompute=modules repeats normalisations and activations of experts in Megatron-LM: "
            "it needs recipe=megatron, and experts or latent attention",
        ),
        (layout.offload and layout.zero == 0, "offload needs zero=1, 2 or 3"),
        (
            layout.offload and recipe.optimizer.moment == "8-bit",
            "offload has no 8-bit states: the host's Adam of DeepSpeed has float32 ones",
        ),
    ]
    return [text for broken, text in rules if broken]
