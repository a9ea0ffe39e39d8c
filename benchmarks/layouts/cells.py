"""Rows of a table of published training runs, as models, layouts and machines.

A row is left out, with a reason, if its table does not publish the model, the layout or a figure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from benchmarks.layouts.megatron_tests import megatron_test
from benchmarks.layouts.models import named_model
from benchmarks.layouts.programs import (
    ALWAYS,
    COMPOSER,
    MEGATRON,
    MEGATRON_2021,
    TORCHTITAN,
    TORCHTITAN_ASYNC,
    TORCHTITAN_EAGER,
    nemo_software,
)
from situate.language.training.gpus import GPUS, find_gpu
from situate.language.training.layout import Layout, Run
from situate.language.training.machine import Machine, machine_of_gpus
from situate.language.training.recipes import RECIPES, Recipe
from situate.language.training.software import Software
from situate.language.training.transformer import Sizes, Transformer, transformer_of_sizes

Row = Mapping[str, str]

GPU_NAMES = {
    "H100-96GB": "H100-96GB",
    "V100-16GB": "V100-16GB",
    "V100 p3": "V100-16GB",
    "V100-32GB": "V100-32GB",
    "a100_80gb": "A100-80GB",
    "A100": "A100-80GB",
    "h100_80gb": "H100",
    "H100": "H100",
    "GB300": "GB300",
    "GB200": "GB200",
    "B300": "B300",
    "B200": "B200",
}
"""GPUs by the beginning or a part of a row's hardware, the longest first."""

REPEATING = {"GPT OSS 120B": ("GB200", "B200", "H100")}
"""GPUs on which a recipe of NeMo in bfloat16 has `recompute_modules=["layernorm", "moe_act"]`, by
its model (NVIDIA-NeMo/Megatron-Bridge, `scripts/performance/configs`)."""

NODES = {"GB200": 64, "GB300": 64}
"""GPUs that NVLink joins, where they are not eight."""


@dataclass(frozen=True)
class Cell:
    """A published run.

    Attributes:
        row: of the table.
        source: its repository.
        family: of runs of one model on one GPU, which cross-validation leaves out together.
        model, run, machine: what ran.
        seconds: of a step, None if they are not published.
        gib: peak memory of a GPU, None if it is not published.
        last_stage: the memory is that of the last stage; else of the fullest.
        reserved: the figure is of reserved memory, not of allocated.
        precise: all settings that the formulas need are published.
    """

    row: Row
    source: str
    family: str
    model: Transformer
    run: Run
    machine: Machine
    seconds: float | None
    gib: float | None
    last_stage: bool = False
    reserved: bool = False
    precise: bool = True


class Unpriced(Exception):
    """A row cannot be priced; the message is the reason."""


def cell_of(row: Row) -> Cell:
    """The run of a row.

    Raises:
        Unpriced: the row does not publish all that a price needs.
    """
    return READERS.get(row["source"], _published)(row)


def machine_of_row(row: Row, count: int, network: float | None = None) -> Machine:
    """The machine of a row.

    Args:
        row: with its hardware.
        count: GPUs.
        network: bytes/s of a node, where it is not that of the table.
    """
    name = next((gpu for part, gpu in GPU_NAMES.items() if part in row["hardware"]), None)
    gpu = find_gpu(row["hardware"].split(",")[0]) if name is None else GPUS[name]
    if gpu is None:
        raise Unpriced(f"hardware {row['hardware']}")
    node = min(NODES.get(gpu.name, 8), count)
    machine = machine_of_gpus(gpu.name, [gpu] * count, node)
    return machine if network is None else replace(machine, network=network)


def number(row: Row, key: str, default: int | None = None) -> int:
    """A whole number of a row.

    Raises:
        Unpriced: it is missing and there is no default.
    """
    if row[key]:
        return int(float(row[key]))
    if default is None:
        raise Unpriced(f"{key} is not published")
    return default


def seconds_of_row(row: Row, tokens: int, gpus: int) -> float | None:
    """Seconds of a step, from themselves or from tokens/s."""
    if row["step_s"]:
        return float(row["step_s"])
    return tokens / (float(row["tok_s_gpu"]) * gpus) if row["tok_s_gpu"] else None


def _gib(row: Row) -> float | None:
    return float(row["peak_gib"]) if row["peak_gib"] else None


def _recipe(name: str, software: Software, precision: str = "bf16") -> Recipe:
    return replace(RECIPES[name], software=software, precision=precision)


def _family(row: Row, machine: Machine) -> str:
    return f"{machine.name} {row['model']} {row['layers']}x{row['hidden']}"


def _vtrain(row: Row) -> Cell:
    """Megatron-DeepSpeed of 2021 with recomputation: GPT, vocabulary 51,200, float16."""
    layout = Layout(
        dp=number(row, "dp"),
        tp=number(row, "tp"),
        pp=number(row, "pp"),
        micro=number(row, "micro_batch"),
        count=_count(row),
        recompute="full",
    )
    machine = machine_of_row(row, layout.devices, 100e9)
    run = Run(layout, number(row, "seq"), _recipe("megatron", MEGATRON_2021, "fp16"))
    return Cell(
        row,
        "vTrain",
        _family(row, machine),
        _gpt(row, 51200),
        run,
        machine,
        seconds_of_row(row, 0, 1),
        None,
    )


def _count(row: Row, replicas: int | None = None) -> int:
    """Micro-batches of a step."""
    samples = (replicas or number(row, "dp")) * number(row, "micro_batch")
    batch = number(row, "global_batch", samples)
    if batch % samples:
        raise Unpriced("the batch is no multiple of its micro-batches")
    return batch // samples


def _gpt(row: Row, vocabulary: int, gated: bool = False, tied: bool = True) -> Transformer:
    hidden = number(row, "hidden")
    sequence = number(row, "seq")
    return transformer_of_sizes(
        row["model"],
        Sizes(
            layers=number(row, "layers"),
            hidden=hidden,
            heads=number(row, "heads", max(hidden // 128, 1)),
            vocabulary=vocabulary,
            gated=gated,
            tied=tied,
            biases=True,
            positions=sequence,
        ),
    )


def _torchtitan(row: Row) -> Cell:
    model = named_model(row["model"])
    if model is None:
        raise Unpriced(f"model {row['model']}")
    tp, pp, cp = (number(row, key, 1) for key in ("tp", "pp", "cp"))
    micro = number(row, "micro_batch")
    recompute = row["recompute"].split()[0]
    interleaved = "Interleaved" in row["note"]
    count = 1
    if pp > 1:
        # A rank's batch is cut into one sample for each micro-batch.
        micro, count = 1, micro
    layout = Layout(
        dp=number(row, "dp"),
        tp=tp,
        cp=cp,
        pp=pp,
        vp=2 if interleaved else 1,
        micro=micro,
        count=count,
        zero=3,
        sp=tp > 1,
        recompute=recompute,
    )
    software = TORCHTITAN_EAGER if row["note"] == "eager" else TORCHTITAN
    if "sync" in row["note"] and "vanilla" not in row["note"]:
        software = TORCHTITAN_ASYNC
    precision = "fp8" if "float8" in row["precision"] else "bf16"
    if "rowwise" in row["precision"]:
        precision = "fp8-rowwise"
    machine = machine_of_row(row, layout.devices)
    sequence = number(row, "seq")
    tokens = layout.batch * sequence
    run = Run(layout, sequence, _recipe("fsdp2", software, precision))
    seconds = seconds_of_row(row, tokens, layout.devices)
    family = _family(row, machine)
    return Cell(row, "torchtitan", family, model, run, machine, seconds, _gib(row), reserved=True)


def _foundry(row: Row) -> Cell:
    """MPT: no biases, tied embedding, attention by flash kernels, FSDP of PyTorch 1."""
    gpus = number(row, "gpus")
    layout = Layout(
        dp=gpus,
        micro=number(row, "micro_batch"),
        count=_count(row, gpus),
        zero=2 if row["shard"] == "SHARD_GRAD_OP" else 3,
        recompute="full" if row["recompute"] == "full" else "none",
    )
    hidden, sequence = number(row, "hidden"), number(row, "seq")
    model = transformer_of_sizes(
        row["model"],
        Sizes(
            layers=number(row, "layers"),
            hidden=hidden,
            heads=number(row, "heads"),
            vocabulary=number(row, "vocab"),
            gated=False,
            tied=True,
            positions=sequence,
        ),
    )
    precision = "fp8" if "fp8" in row["precision"] else "bf16"
    recipe = _recipe("fsdp2", COMPOSER, precision)
    if "PURE" in row["precision"]:
        recipe = replace(recipe, weight=2, gradient=2)
    machine = machine_of_row(row, gpus, 200e9 if "a100" in row["hardware"] else None)
    run = Run(layout, sequence, recipe)
    seconds = seconds_of_row(row, layout.batch * sequence, gpus)
    family = f"{machine.name} {row['model']}"
    return Cell(row, "llm-foundry", family, model, run, machine, seconds, _gib(row))


def _bridge(row: Row) -> Cell:
    model = named_model(row["model"])
    if model is None:
        raise Unpriced("model without published sizes, or with layers without attention")
    if "LoRA" in row["note"] or "SFT" in row["note"]:
        raise Unpriced("fine-tuning with packed sequences")
    gpus = number(row, "gpus")
    tp, pp, cp, ep = (number(row, key, 1) for key in ("tp", "pp", "cp", "ep"))
    dp = gpus // (tp * pp * cp)
    layout = Layout(
        dp=dp,
        tp=tp,
        cp=cp,
        ep=ep,
        pp=pp,
        vp=number(row, "vp", 1),
        micro=number(row, "micro_batch"),
        count=_count(row, dp),
        zero=3 if row["shard"] == "FSDP" else 1,
        sp=tp > 1,
    )
    kind = row["precision"].lower()
    if not kind:
        raise Unpriced("precision is not published")
    precision = "fp4" if "fp4" in kind else "fp8" if "fp8" in kind else "bf16"
    machine = machine_of_row(row, gpus)
    if precision == "bf16" and machine.weakest.name in REPEATING.get(row["model"], ()):
        layout = replace(layout, recompute="modules")
    # The recipes reduce gradients in bfloat16 (`grad_reduce_in_fp32 = False`).
    software = _nemo_software(row, machine)
    recipe = replace(_recipe("megatron", software, precision), gradient=2)
    run = Run(layout, number(row, "seq"), recipe)
    seconds = seconds_of_row(row, layout.batch * run.sequence, gpus)
    family = f"{machine.name} {row['model'].split(' (')[0]}"
    return Cell(row, "Megatron-Bridge", family, model, run, machine, seconds, None)


def _nemo_software(row: Row, machine: Machine) -> Software:
    """The software of a run by its container; the newest one without a version."""
    match = re.search(r"\d\d\.\d\d(\.\d\d)?", row["framework"])
    model = row["model"].split(" (")[0]
    return nemo_software(model, machine.weakest.name, match[0] if match else ALWAYS)


def _megatron(row: Row) -> Cell:
    if "functional_tests" in row["path"]:
        return _megatron_test(row)
    tp, pp, dp = (number(row, key, 1) for key in ("tp", "pp", "dp"))
    new = row["framework"] == "Megatron-Core"
    micro = number(row, "micro_batch", 0)
    batch = number(row, "global_batch")
    if not micro:
        # README and papers leave the micro-batch out: it is the largest power of two up to 4 (16
        # on one device in the older README) that leaves micro-batches for the pipeline.
        most = batch // dp if pp == 1 and "tables.tex" in row["path"] else 4 if pp == 1 else 1
        micro = next(m for m in (16, 8, 4, 2, 1) if m <= most and batch % (dp * m) == 0)
    layout = Layout(
        dp=dp,
        tp=tp,
        pp=pp,
        micro=micro,
        count=batch // (dp * micro),
        zero=1 if row["shard"] == "distributed optimizer" else 0,
        sp=new and tp > 1,
        recompute=row["recompute"] or "none",
    )
    vocabulary = number(row, "vocab", 51200)
    model = _gpt(row, vocabulary, tied=not new)
    if new and pp > 1:
        # README leaves the chunks of its interleaved pipelines out: one of each layer.
        layout = replace(layout, vp=model.layers // pp)
    machine = machine_of_row(row, layout.devices)
    software, precision = (MEGATRON, "bf16") if new else (MEGATRON_2021, "fp16")
    run = Run(layout, number(row, "seq"), _recipe("megatron", software, precision))
    seconds = seconds_of_row(row, 0, 1)
    if seconds is None:
        seconds = _seconds_of_tflops(row, model, run)
    family = _family(row, machine)
    return Cell(row, "Megatron tables", family, model, run, machine, seconds, None, precise=False)


def _seconds_of_tflops(row: Row, model: Transformer, run: Run) -> float:
    """Seconds from TFLOP/s, by the formula of Narayanan et al. (arXiv:2104.04473, equation 3)."""
    hidden, sequence = model.hidden, run.sequence
    passes = 4 if run.layout.recompute == "full" else 3
    flops = (
        24
        * passes
        * run.layout.batch
        * sequence
        * model.layers
        * hidden**2
        * (1 + sequence / (6 * hidden) + model.vocabulary / (16 * model.layers * hidden))
    )
    return flops / (float(row["tflops_gpu"]) * 1e12 * run.layout.devices)


def _megatron_test(row: Row) -> Cell:
    test = megatron_test(row)
    if test is None:
        raise Unpriced("test without a decoder of equal layers, or of unknown GPUs")
    machine = machine_of_row(row, test.run.layout.devices)
    return Cell(
        row,
        "Megatron tests",
        row["model"],
        test.model,
        test.run,
        machine,
        seconds_of_row(row, 0, 1),
        _gib(row),
        # Its last rank writes the log.
        last_stage=True,
        precise=test.precise,
    )


def _calculon(row: Row) -> Cell:
    tp, pp, dp = (number(row, key) for key in ("tp", "pp", "dp"))
    parallel = "sequence" in row["recompute"]
    layout = Layout(
        dp=dp,
        tp=tp,
        pp=pp,
        vp=number(row, "vp", 1),
        micro=number(row, "micro_batch"),
        count=_count(row),
        sp=parallel,
        recompute="selective" if parallel else "full",
    )
    machine = machine_of_row(row, layout.devices)
    run = Run(layout, number(row, "seq"), _recipe("megatron", MEGATRON_2021, "fp16"))
    model = _gpt(row, 51200)
    family = _family(row, machine)
    return Cell(
        row, "Megatron tables", family, model, run, machine, seconds_of_row(row, 0, 1), None
    )


def _alpa(row: Row) -> Cell:
    if not row["layers"]:
        raise Unpriced("sizes and layout are not published")
    cell = _calculon(row)
    return replace(cell, source="Alpa", gib=_gib(row))


RECOMPUTE = {"": "none", "no": "none", "full": "full", "selective": "selective"}
"""Recomputation by its word in the table."""


def _published(row: Row) -> Cell:
    """A run of another source, from the columns alone.

    Raises:
        Unpriced: a size, a degree or a kind of recomputation is missing, or GPUs differ.
    """
    if any(mark in row["hardware"] for mark in ("+", "mix", ";")):
        raise Unpriced("unequal GPUs")
    word = row["recompute"].split(" ")[0]
    if word not in RECOMPUTE:
        raise Unpriced(f"recompute {row['recompute']}")
    tp, pp, cp = (number(row, key, 1) for key in ("tp", "pp", "cp"))
    gpus = number(row, "gpus")
    dp = number(row, "dp", max(gpus // (tp * pp * cp), 1))
    name, zero = _division(row)
    layout = Layout(
        dp=dp,
        tp=tp,
        cp=cp,
        ep=number(row, "ep", 1),
        pp=pp,
        vp=number(row, "vp", 1) if pp > 1 else 1,
        micro=number(row, "micro_batch"),
        count=_count(row, dp),
        zero=zero,
        recompute=RECOMPUTE[word],
    )
    machine = machine_of_row(row, layout.devices)
    llama = "llama" in row["model"].lower()
    model = named_model(row["model"])
    model = model or _gpt(row, number(row, "vocab", 50304), gated=llama, tied=not llama)
    recipe = RECIPES[name]
    if row["precision"].startswith(("fp16", "bf16", "fp8")):
        recipe = replace(recipe, precision=row["precision"].split(" ")[0].split("+")[0])
    run = Run(layout, number(row, "seq"), recipe)
    seconds = seconds_of_row(row, layout.batch * run.sequence, layout.devices)
    family = _family(row, machine)
    source = row["source"].split("/")[-1]
    return Cell(row, source, family, model, run, machine, seconds, _gib(row), precise=False)


def _division(row: Row) -> tuple[str, int]:
    """The recipe of a row, and ZeRO's stage, by its framework and its shards."""
    shard = row["shard"].lower()
    stage = re.search(r"zero-?(\d)", shard)
    if stage:
        return "deepspeed", int(stage[1])
    if "fsdp" in shard or "full_shard" in shard:
        return "fsdp2", 3
    return "megatron", 1 if "distributed" in shard else 0


READERS: dict[str, Callable[[Row], Cell]] = {
    "VIA-Research/vTrain": _vtrain,
    "pytorch/torchtitan": _torchtitan,
    "mosaicml/llm-foundry": _foundry,
    "NVIDIA-NeMo/Megatron-Bridge": _bridge,
    "NVIDIA/Megatron-LM": _megatron,
    "calculon-ai/calculon": _calculon,
    "alpa-projects/alpa": _alpa,
}
"""Readers by the repository of a row."""


def file_of_test(row: Row) -> str:
    """The machine and the kind of build of a golden value, such as `lts_dgx_a100`."""
    match = re.search(r"golden_values_(\w[\w-]*)\.json", row["path"])
    return match[1] if match else ""
