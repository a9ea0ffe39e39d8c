"""Layouts as texts, such as `dp=2,tp=4,pp=2`: their keys, and what stands for missing ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from situate.errors import SituateError, nearest
from situate.files.contents import one_line
from situate.language.training.layout import (
    RECOMPUTE,
    SCHEDULES,
    SWITCHES,
    V_CHUNKS,
    Layout,
    Run,
    V,
)
from situate.language.training.layout_rules import PREDICTION, check_layout
from situate.language.training.recipes import Recipe, find_recipe
from situate.language.training.transformer import Transformer, parse_integers

DEGREES = {
    "dp": 2**20, "tp": 2**10, "cp": 2**10, "ep": 2**12, "etp": 2**10, "pp": 2**10, "vp": 2**8,
    "shard": 2**20, "mtp": 2**4, "micro": 2**16, "batch": 2**24, "seq": 2**24,
}  # fmt: skip
"""Largest degrees by their key."""

WORDS = ("recompute", "schedule", "recipe", "precision", "optimizer")
"""Keys with words as values."""

DEFAULT_SEQUENCE = 4096
"""Tokens of a sample at most, where a layout does not say them."""

PIPELINE_FILL = 4
"""Micro-batches for each stage of a pipeline, where a layout does not say the batch."""


def parse_layout(text: str, model: Transformer, devices: int) -> Run:
    """The run of a text such as `dp=2,tp=4,pp=2,micro=2,batch=64,recompute=selective`.

    Missing degrees are 1, except `dp`, which takes the devices that are left. Without `batch`, a
    step has one micro-batch for each replica, or four for each stage of a pipeline. Sequence
    parallelism is on with `tp`, and ZeRO's stage is the recipe's.

    Args:
        text: pairs of key and value.
        model: whose heads, layers and experts the degrees must divide.
        devices: of the cluster.

    Raises:
        SituateError: a key or a value does not exist, or the layout is impossible.
    """
    numbers, words = _pairs(text)
    recipe = find_recipe(words.get("recipe"), words.get("precision"), words.get("optimizer"))
    switches = {key: _switch(key, words[key]) for key in SWITCHES if key in words}
    recompute = words.get("recompute", "none")
    if recompute not in RECOMPUTE:
        raise SituateError(one_line(f"--layout: recompute {recompute[:40]!r}: {_list(RECOMPUTE)}"))
    schedule = words.get("schedule", SCHEDULES[0])
    if schedule not in SCHEDULES:
        raise SituateError(one_line(f"--layout: schedule {schedule[:40]!r}: {_list(SCHEDULES)}"))
    if schedule == SCHEDULES[V]:
        numbers.setdefault("vp", V_CHUNKS)
    passes = {"recompute": recompute, "schedule": schedule}
    layout = _with_defaults(numbers, switches, passes, recipe, devices)
    run = Run(layout, numbers.get("seq") or _sequence(model), recipe)
    check_layout(run, model, devices)
    return run


AUTO = "auto"
"""The first word of a text that leaves the degrees to the search."""

SEARCHED = ("batch", "seq", "mtp", *WORDS[2:])
"""Keys that may stand beside `auto`."""


def parse_request(text: str, model: Transformer) -> tuple[Run, int | None]:
    """The run of a text such as `auto,batch=256,seq=4096,recipe=fsdp2`, and its batch.

    Raises:
        SituateError: a key or a value does not exist, or the search chooses it.
    """
    numbers, words = _pairs(text.partition(",")[2])
    for key in (*numbers, *words):
        if key not in SEARCHED:
            raise SituateError(f"--layout auto: chooses {key}: leave it out")
    recipe = find_recipe(words.get("recipe"), words.get("precision"), words.get("optimizer"))
    layout = Layout(mtp=numbers.get("mtp", 0))
    if layout.mtp and not recipe.software.predicts:
        raise SituateError(f"--layout auto: {PREDICTION}")
    return Run(layout, numbers.get("seq") or _sequence(model), recipe), numbers.get("batch")


def _sequence(model: Transformer) -> int:
    """Tokens of a sample, where a text does not say them."""
    return min(model.context or DEFAULT_SEQUENCE, DEFAULT_SEQUENCE)


def _pairs(text: str) -> tuple[dict[str, int], dict[str, str]]:
    """Values by key: numbers, and words."""
    words: dict[str, str] = {}
    rest = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if key == "zero" and equals:
            if value not in ("0", "1", "2", "3"):
                raise SituateError(one_line(f"--layout: zero must be 0 to 3, got {value[:40]!r}"))
            words["zero"] = value
        elif key in (*WORDS, *SWITCHES) and equals:
            if key in words:
                raise SituateError(f"--layout: {key} is there twice")
            words[key] = value
        elif key not in DEGREES:
            hint = nearest(key, (*DEGREES, *WORDS, *SWITCHES, "zero"))
            raise SituateError(one_line(f"--layout: unknown key {key[:40]!r}{hint}"))
        else:
            rest.append(part)
    numbers = parse_integers(",".join(rest), DEGREES, "--layout") if rest else {}
    if "zero" in words:
        numbers["zero"] = int(words.pop("zero"))
    return numbers, words


def _switch(key: str, value: str) -> bool:
    if value not in ("on", "off"):
        raise SituateError(one_line(f"--layout: {key} must be on or off, got {value[:40]!r}"))
    return value == "on"


def _with_defaults(
    numbers: dict[str, int],
    switches: dict[str, bool],
    passes: dict[str, str],
    recipe: Recipe,
    devices: int,
) -> Layout:
    """The layout with its missing degrees."""
    degrees = {key: numbers.get(key, 1) for key in ("tp", "cp", "ep", "pp", "vp", "micro")}
    inner = degrees["tp"] * degrees["cp"] * degrees["pp"]
    dp = numbers.get("dp") or max(devices // inner, 1)
    layout = Layout(
        dp=dp,
        **degrees,
        etp=numbers.get("etp", 1),
        zero=numbers.get("zero", recipe.zero),
        shard=numbers.get("shard", 0),
        mtp=numbers.get("mtp", 0),
        sp=switches.get("sp", degrees["tp"] > 1),
        recompute=passes["recompute"],
        schedule=passes["schedule"],
        offload=switches.get("offload", False),
    )
    step = dp * layout.micro
    batch = numbers.get("batch") or step * (PIPELINE_FILL * layout.pp if layout.pp > 1 else 1)
    if batch % step:
        raise SituateError(
            f"--layout: batch {batch} is no multiple of dp {dp} x micro {layout.micro} = {step}"
        )
    return replace(layout, count=batch // step)


def _list(names: Sequence[str]) -> str:
    return f"must be {', '.join(names[:-1])} or {names[-1]}"
