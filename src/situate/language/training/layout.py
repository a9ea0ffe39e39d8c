"""Layouts of a training run: its degrees of parallelism, its micro-batches, its recomputation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from situate.errors import SituateError, nearest
from situate.files.contents import one_line
from situate.language.training.recipes import Recipe, find_recipe
from situate.language.training.transformer import Transformer, parse_integers

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

RECOMPUTE = ("none", "selective", "full", "modules")
"""Recomputation of activations by its number in a table.

`modules` is that of Megatron-LM's `--recompute-modules layernorm moe_act mla_up_proj`.
"""

DEGREES = {
    "dp": 2**20, "tp": 2**10, "cp": 2**10, "ep": 2**12, "etp": 2**10, "pp": 2**10, "vp": 2**8,
    "shard": 2**20, "mtp": 2**4, "micro": 2**16, "batch": 2**24, "seq": 2**24,
}  # fmt: skip
"""Largest degrees by their key."""

SWITCHES = ("sp", "offload")
"""Keys with the values on and off."""

WORDS = ("recompute", "schedule", "recipe", "precision", "optimizer")
"""Keys with words as values."""

SCHEDULES = ("1f1b", "zero-bubble", "zero-bubble-h2", "zero-bubble-v")
"""Orders of a pipeline's passes by their number in a table. The first two interleave the chunks of
a stage, if it has several."""

ONE_F_ONE_B, H1, H2, V = range(len(SCHEDULES))
"""Numbers of the schedules: 1F1B, and ZB-H1, ZB-H2 and ZB-V of arXiv:2401.10241."""

V_CHUNKS = 2
"""Chunks of a stage in ZB-V: a micro-batch passes the stages forwards and backwards."""

NUMBERED = {"recompute": RECOMPUTE, "schedule": SCHEDULES}
"""Columns of a table that are numbers of words."""

DEFAULT_SEQUENCE = 4096
"""Tokens of a sample at most, where a layout does not say them."""

PREDICTION = "mtp needs recipe=megatron: other programs train no further predictions"
"""Why a recipe excludes multi-token prediction."""

PIPELINE_FILL = 4
"""Micro-batches for each stage of a pipeline, where a layout does not say the batch."""


@dataclass(frozen=True)
class Layout:
    """A layout.

    Attributes:
        dp: replicas of the model, each with samples of its own.
        tp: devices among which matrices are divided.
        cp: devices among which a sequence is divided.
        ep: devices among which the experts of a layer are divided; they are among `dp * cp * tp`.
        etp: devices among which the matrices of an expert are divided.
        pp: stages of the pipeline.
        vp: chunks of layers on each stage; more than one interleaves them.
        micro: samples of a micro-batch.
        count: micro-batches of a step for each replica.
        zero: ZeRO's stage: 0 replicates all states, 1 divides masters and moments among the
            replicas, 2 gradients too, 3 weights too.
        shard: replicas among which ZeRO divides states, the rest of which are copies (hybrid
            sharding); 0 for all of `dp`.
        sp: the activations between matrices are divided among `tp` too (sequence parallelism).
        recompute: activations that the backward pass computes again.
        offload: masters, moments and their update are in host memory.
        mtp: layers of the last stage that predict further tokens (multi-token prediction;
            DeepSeek-V3, arXiv:2412.19437, section 2.2).
        schedule: the order of a pipeline's passes. In all but 1F1B gradients of weights run late,
            where the pipeline would wait.
    """

    dp: int = 1
    tp: int = 1
    cp: int = 1
    ep: int = 1
    etp: int = 1
    pp: int = 1
    vp: int = 1
    micro: int = 1
    count: int = 1
    zero: int = 0
    shard: int = 0
    sp: bool = False
    recompute: str = "none"
    offload: bool = False
    mtp: int = 0
    schedule: str = SCHEDULES[ONE_F_ONE_B]

    @property
    def late(self) -> bool:
        """True if gradients of weights run late."""
        return self.schedule != SCHEDULES[ONE_F_ONE_B]

    @property
    def shards(self) -> int:
        """Replicas among which ZeRO-3 divides all states."""
        return (self.shard or self.dp) if self.zero == 3 else 1

    def stage(self, chunk: int) -> int:
        """The stage of a chunk of layers, both in the order in which a micro-batch passes them."""
        if self.schedule == SCHEDULES[V] and chunk >= self.pp:
            return V_CHUNKS * self.pp - 1 - chunk
        return chunk % self.pp

    @property
    def last_stage(self) -> int:
        """The stage with the output."""
        return self.stage(self.pp * self.vp - 1)

    @property
    def devices(self) -> int:
        """Devices of all replicas."""
        return self.dp * self.tp * self.cp * self.pp

    @property
    def batch(self) -> int:
        """Samples of a step."""
        return self.dp * self.micro * self.count

    def __str__(self) -> str:
        """The layout as `--layout` reads it."""
        degrees = [f"dp={self.dp}", f"tp={self.tp}", f"pp={self.pp}"]
        degrees += [
            f"{key}={getattr(self, key)}"
            for key in ("cp", "ep", "etp", "vp", "shard")
            if getattr(self, key) > 1
        ]
        degrees += [f"mtp={self.mtp}"] if self.mtp else []
        degrees += [f"micro={self.micro}", f"batch={self.batch}", f"zero={self.zero}"]
        degrees += [f"{key}=on" for key in SWITCHES if getattr(self, key)]
        degrees += [f"schedule={self.schedule}"] if self.late else []
        return ",".join([*degrees, f"recompute={self.recompute}"])


@dataclass(frozen=True)
class Run:
    """A layout with the sequences and the recipe of the run.

    Attributes:
        layout: the layout.
        sequence: tokens of a sample.
        recipe: the states of each parameter.
    """

    layout: Layout
    sequence: int
    recipe: Recipe


def group_size(count: int, pp: int) -> int:
    """Micro-batches that pass a chunk of an interleaved stage before the next chunk's turn.

    As in PyTorch's and Megatron-LM's schedules they are the fewest, at least `pp`, in groups of
    equal size. 0 if `count` micro-batches have no such groups.
    """
    groups = count // pp
    return 0 if not groups or count % groups else count // groups


class LayoutTable:
    """Many layouts as columns, which the formulas of time and memory read.

    Attributes have shape (layouts,) and the names of `Layout`; `recompute` is an index of
    `RECOMPUTE`, and `schedule` one of `SCHEDULES`.
    """

    dp: Integers
    tp: Integers
    cp: Integers
    ep: Integers
    etp: Integers
    pp: Integers
    vp: Integers
    micro: Integers
    count: Integers
    zero: Integers
    shard: Integers
    sp: Integers
    recompute: Integers
    offload: Integers
    mtp: Integers
    schedule: Integers

    def __init__(self, columns: dict[str, Integers]) -> None:
        self.columns = columns
        for name, column in columns.items():
            setattr(self, name, column)

    def __len__(self) -> int:
        return len(self.dp)

    @classmethod
    def of(cls, layouts: Sequence[Layout]) -> LayoutTable:
        """The table of these layouts."""
        rows = [
            [
                NUMBERED[name].index(value) if name in NUMBERED else int(value)
                for name, value in asdict(layout).items()
            ]
            for layout in layouts
        ]
        columns = np.array(rows, np.int64).reshape(len(rows), -1).T
        return cls({field.name: columns[i] for i, field in enumerate(fields(Layout))})

    def rows(self, index: NDArray[Any]) -> LayoutTable:
        """The layouts of these numbers, or of a mask."""
        return LayoutTable({name: column[index] for name, column in self.columns.items()})

    def layout(self, index: int) -> Layout:
        """The layout of a row."""
        values: dict[str, Any] = {name: int(c[index]) for name, c in self.columns.items()}
        words = {name: texts[values[name]] for name, texts in NUMBERED.items()}
        return Layout(**values | words | {key: bool(values[key]) for key in SWITCHES})

    @cached_property
    def group(self) -> Integers:
        """Micro-batches that pass a chunk of an interleaved stage before the next chunk's turn."""
        size: Integers = self.count // np.maximum(self.count // self.pp, 1)
        return size

    @cached_property
    def late(self) -> Flags:
        """Gradients of weights run late."""
        flags: Flags = self.schedule != ONE_F_ONE_B
        return flags

    @cached_property
    def last_stage(self) -> Integers:
        """The stage with the output: the first one, if chunks go backwards through the stages."""
        return np.where(self.schedule == V, 0, self.pp - 1)

    @cached_property
    def apart(self) -> Flags:
        """Embedding and output are on different stages."""
        return self.last_stage > 0

    @cached_property
    def copies(self) -> Floats:
        """Groups of replicas that hold the same states."""
        return self.dp / np.where(self.shard > 0, self.shard, self.dp)

    @cached_property
    def spread(self) -> Floats:
        """Replicas among which ZeRO divides the states of matrices outside experts."""
        return self.dp * self.cp / self.copies

    @cached_property
    def expert_spread(self) -> Floats:
        """Replicas among which ZeRO divides the states of experts."""
        return self.spread * self.tp / (self.ep * self.etp)

    @cached_property
    def sequence_split(self) -> Floats:
        """Devices among which activations between matrices are divided."""
        return np.where(self.sp == 1, self.tp, 1).astype(float)


def recomputations(model: Transformer, recipe: Recipe) -> tuple[str, ...]:
    """The kinds of recomputation that a program has for a model."""
    has_modules = recipe.name == "megatron" and (model.experts is not None or model.latent > 0)
    return RECOMPUTE if has_modules else RECOMPUTE[:-1]


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
        raise SituateError(f"--layout: recompute {recompute!r}: {_list(RECOMPUTE)}")
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


def _list(names: Sequence[str]) -> str:
    return f"must be {', '.join(names[:-1])} or {names[-1]}"
