"""Megatron-LM's functional tests, whose golden values have the memory of their last rank.

The table of measurements has sizes and degrees; the other settings are those of the test's
`model_config.yaml` (`megatron_settings.py`), or follow from its name. The tokenizer is that of
GPT-2, padded to 128 times the tensor parallelism.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from benchmarks.layouts.megatron_settings import (
    DEEPSEEK,
    VOCABULARY_MULTIPLE,
    Settings,
    settings_of,
    with_latent_attention,
)
from benchmarks.layouts.programs import MEGATRON_TESTS, test_workspace
from situate.language.hyperparameters import Experts
from situate.language.training.layout import Layout, Run
from situate.language.training.recipes import OPTIMIZERS, RECIPES
from situate.language.training.software import Software
from situate.language.training.transformer import Sizes, Transformer, transformer_of_sizes

GPT2_VOCABULARY, BERT_VOCABULARY = 50257, 30522

NO_DECODERS = (
    "t5",
    "hybrid",
    "mimo",
    "multimodal",
    "nemotron",
    "grpo",
    "deepseek",
    "modelopt",
)
"""Parts of names of tests whose models are no decoders of equal layers with published sizes."""

UNTIED = ("untie", "uneven", "memory_speed", "scoped_cudagraph")
"""Parts of names of tests whose output is no copy of the embedding."""

UNKNOWN_MEMORY = ("fsdp", "cudagraph", "z3", "a2a_ovlp", "overlap_optim")
"""Parts of names of tests with states or buffers that the formulas do not have."""


@dataclass(frozen=True)
class MegatronTest:
    """A test.

    Attributes:
        model, run: what it trains.
        precise: the formulas have all of its features.
    """

    model: Transformer
    run: Run
    precise: bool


def megatron_test(row: Mapping[str, str]) -> MegatronTest | None:
    """The test of a row; None without a decoder of equal layers, or of unknown GPUs."""
    name = row["model"]
    if any(part in name for part in NO_DECODERS) or not row["layers"] or not row["seq"]:
        return None
    if "release" in name and not row["gpus"]:
        return None
    gpus = int(row["gpus"] or (4 if "1node" in name else 8))
    settings = settings_of(name)
    model = _model(row, settings)
    layout = _layout(row, model, gpus, settings)
    if layout is None:
        return None
    optimizer = OPTIMIZERS["muon" if "muon" in name else "adamw"]
    software = _software(row, model, settings)
    recipe = replace(RECIPES["megatron"], software=software, optimizer=optimizer)
    precise = not any(part in name for part in UNKNOWN_MEMORY)
    return MegatronTest(model, Run(layout, int(row["seq"]), recipe), precise)


def _software(row: Mapping[str, str], model: Transformer, settings: Settings) -> Software:
    """The program with the kernels and the workspaces of a test."""
    name, hardware = row["model"], row["hardware"]
    scores = _stores_scores(row) if settings.scores is None else settings.scores
    logits = _logit_bytes(row)
    # FlashAttention of other GPUs than Hopper returns another order of axes, which is copied; the
    # deterministic backward pass of cuDNN, which needs no copy, is Hopper's alone.
    copied = not scores and "H100" not in hardware and "nondeterministic" not in name
    return replace(
        MEGATRON_TESTS,
        attention="scores" if scores else "flash",
        dropout=settings.dropout,
        fused_softmax=settings.fused_softmax,
        result_copies=2 if copied else 1,
        repeated_parts=settings.repeated,
        offloaded=settings.offloaded,
        workspace=test_workspace(
            hardware,
            "nondeterministic" not in name,
            4 if model.experts else 3 if settings.overlap else 1,
        ),
        logit_bytes=logits,
        divided_logit_bytes=logits,
    )


def _stores_scores(row: Mapping[str, str]) -> bool:
    """True if the test's attention stores scores.

    Tests that resume leave the kernel to Transformer Engine, which takes flash attention, except
    in the older images; others ask for the kernel with scores, except for tests with context
    parallelism, which it cannot do. Golden values over 19 steps are of older images.
    """
    name = row["model"]
    if int(row["cp"] or 1) > 1 or "memory_speed" in name or "reshard" in name:
        return False
    if "dracooci" in row["path"] or ("lts" in row["path"] and "of 19 steps" in row["note"]):
        return True
    choice = "resume" in name or "cross_entropy" in name
    return not choice or "mcore_te" not in name


def _logit_bytes(row: Mapping[str, str]) -> float:
    """Bytes of a logit: 6, and further copies in some tests.

    Deferred gradients of the embedding keep the logits' gradients of two micro-batches. The fused
    loss of older images has two more copies in float32, that of newer ones one: the compiler of
    `fused_cross_entropy.py` writes the exponents to a new tensor before it copies them back.
    """
    if "defer_embedding" in row["model"]:
        return 6 + 2 * 2
    if "cross_entropy" in row["model"] or "tp2_pp2_ep4_etp1" in row["model"]:
        old = any(mark in row["note"] for mark in ("of 9 steps", "of 19 steps", "dracooci"))
        return 14 if old else 10
    return 6


def _model(row: Mapping[str, str], settings: Settings) -> Transformer:
    name, tp = row["model"], int(row["tp"])
    hidden, heads = int(row["hidden"]), int(row["heads"])
    bert = name.startswith("bert")
    vocabulary = int(row["vocab"] or (BERT_VOCABULARY if bert else GPT2_VOCABULARY))
    proxy = settings.latent == DEEPSEEK
    multiple = (VOCABULARY_MULTIPLE if proxy else 128) * tp
    gated = "swiglu" in name or "op_fuser" in name or proxy
    large = "memory_speed" in name
    untied = any(part in name for part in UNTIED) or settings.latent is not None
    experts = settings.experts
    if not experts and (match := re.search(r"(\d)experts", name)):
        experts = Experts(int(match[1]), 2 if "top2" in name else 1, 4 * hidden, 0, 0)
    # Two layers on the first and the last stage, four on each other one.
    layers = 8 if "uneven_pipeline" in name else int(row["layers"])
    layers = settings.last_layers * int(row["pp"]) or layers
    model = transformer_of_sizes(
        name,
        Sizes(
            layers=layers,
            hidden=hidden,
            heads=heads,
            kv_heads=8 if large and not proxy else 0,
            head=128 if proxy else 0,
            ffn=_ffn(hidden, gated, settings),
            vocabulary=-(-vocabulary // multiple) * multiple,
            gated=gated,
            tied=not untied,
            biases=experts is None and "disable_bias" not in name,
            positions=0 if "rope" in name or (untied and experts) else int(row["seq"]),
            experts=experts,
        ),
    )
    if bert:
        # A dense layer before the output, and the pooler of the second loss (`bert_lm_head.py`,
        # `pooler.py`), with their biases and a normalisation.
        model = replace(model, head_weights=2 * hidden**2 + 6 * hidden)
    return with_latent_attention(model, settings.latent) if settings.latent else model


def _ffn(hidden: int, gated: bool, settings: Settings) -> int:
    """The width of the dense network; 0 for the usual one.

    The width of a gated network is 8/3 of the hidden size, in multiples of 64.
    """
    if settings.latent == DEEPSEEK:
        return 4096
    return 8 * hidden // 3 // 64 * 64 if gated else 0


def _layout(
    row: Mapping[str, str], model: Transformer, gpus: int, settings: Settings
) -> Layout | None:
    """The layout; None if its degrees do not multiply to the GPUs."""
    name = row["model"]
    tp, pp, cp, ep = (int(row[key] or 1) for key in ("tp", "pp", "cp", "ep"))
    dp = gpus // (tp * pp * cp)
    if dp * tp * pp * cp != gpus:
        return None
    micro = int(row["micro_batch"])
    # The table's `vp` is the number of layers of a chunk.
    chunk = re.search(r"vp(\d)", name)
    layers = int(row["vp"]) if row["vp"] else int(chunk[1]) if chunk else 0
    vp = model.layers // (pp * layers) if layers and pp > 1 else 1
    if "uneven_pipeline" in name:
        vp = 1
    if "account_for_embedding" in name:
        # Embedding and loss are chunks of their own: eight chunks of six layers.
        vp = 2
    vp = settings.vp or vp
    count = max(int(row["global_batch"] or dp * micro) // (dp * micro), 1)
    # Two groups of replicas divide states among themselves.
    shard = dp // 2 if "multi_dist_optimizer_instances" in name else 0
    tensor = re.search(r"etp(\d)", name)
    return Layout(
        dp=dp,
        tp=tp,
        cp=cp,
        ep=ep,
        etp=int(tensor[1]) if tensor else tp if model.experts else 1,
        pp=pp,
        vp=max(vp, 1),
        micro=micro,
        count=count,
        shard=shard,
        mtp=settings.mtp,
        zero=1 if row["shard"] == "distributed optimizer" else 0,
        sp=tp > 1
        and (model.experts is not None or cp > 1 or bool(re.search("sequence_p|_sp_|_mla", name))),
        recompute={"no": "none"}.get(row["recompute"], row["recompute"]),
    )
