"""Settings of Megatron-LM's functional tests that the table of measurements lacks.

They are those of the tests' files `model_config.yaml` (NVIDIA/Megatron-LM,
`tests/functional_tests/test_cases`), found by a part of the test's name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from situate.language.hyperparameters import Experts
from situate.language.training.transformer import Transformer


@dataclass(frozen=True)
class Latent:
    """Multi-head latent attention.

    Attributes:
        query_rank, cache_rank: widths of compressed queries, and of keys and values.
        rope: part of a head with rotary positions.
        key, value: sizes of a head without it.
    """

    query_rank: int
    cache_rank: int
    rope: int
    key: int
    value: int


DEEPSEEK = Latent(1536, 512, 64, 128, 128)
"""Attention of the tests that follow DeepSeek-V3."""

VOCABULARY_MULTIPLE = 3232
"""Multiple to which tests that follow DeepSeek-V3 pad their vocabulary, for each device."""


@dataclass(frozen=True)
class Settings:
    """Settings of a test; None and 0 stand for those of its name.

    Attributes:
        experts: the mixture of experts.
        latent: multi-head latent attention.
        last_layers: layers of the last stage, whose memory is published.
        vp: chunks of a stage.
        mtp: layers that predict further tokens.
        scores: attention stores scores; None where the name says it.
        dropout: masks of dropout are stored.
        fused_softmax: softmax over scores is one kernel.
        overlap: tensor parallelism overlaps with products (`--tp-comm-overlap`).
        repeated, offloaded: parts of a layer's activations (`activations.PARTS`).
    """

    experts: Experts | None = None
    latent: Latent | None = None
    last_layers: int = 0
    vp: int = 0
    mtp: int = 0
    scores: bool | None = None
    dropout: bool = True
    fused_softmax: bool = True
    overlap: bool = False
    repeated: tuple[str, ...] = ("scores",)
    offloaded: tuple[str, ...] = ()


PROXY = Settings(
    experts=Experts(32, 4, 1024, 1024, 1), latent=DEEPSEEK, vp=4, mtp=1, scores=True, dropout=False
)
"""`gpt3_mcore_te_tp2_pp2_ep4_etp1_...`: a small DeepSeek-V3."""

# All dense layers are on the first stage: `Et*3|(tt|)*6tmL` leaves seven others to the last.
REPEATED = replace(
    PROXY,
    experts=Experts(32, 4, 1024, 1024, 0),
    last_layers=7,
    repeated=("normed", "heads", "network", "products"),
)

OFFLOADED = replace(
    REPEATED,
    last_layers=6,
    offloaded=("streams", "normed", "heads", "results", "scores", "routed", "experts"),
)

SHARED = Settings(experts=Experts(8, 2, 1024, 512, 0))

SETTINGS = {
    "no_mtp_no_a2a_ovlp_fine_grained_offloading": replace(OFFLOADED, mtp=0),
    "fine_grained_offloading": OFFLOADED,
    "selective_recompute_experimental": REPEATED,
    "activation_func_fp8_input_store": replace(REPEATED, repeated=REPEATED.repeated[:-1]),
    "attn_cudagraph": replace(PROXY, mtp=0),
    "tp2_pp2_ep4_etp1": PROXY,
    "scoped_cudagraph_1node": replace(
        SHARED, mtp=1, scores=False, dropout=False, repeated=("products",)
    ),
    # `Et|(tt|)*6mL` leaves six layers to the last stage.
    "scoped_cudagraph": replace(
        SHARED, last_layers=6, vp=4, mtp=1, scores=False, dropout=False, repeated=("products",)
    ),
    "tp4_ep2_etp2_pp2": SHARED,
    "8experts_etp1_ep4": Settings(experts=Experts(8, 2, 2048, 0, 0)),
    "te_ep8": Settings(experts=Experts(8, 2, 1024, 0, 0)),
    "tp2_pp2_mla": Settings(latent=Latent(192, 64, 8, 16, 16), scores=True),
    "op_fuser": Settings(experts=Experts(4, 1, 1344, 0, 0), scores=False),
    "weekly_mcore_tp2_pp2": Settings(scores=False, overlap=True),
    "weekly_mcore": Settings(scores=False),
    "cp2": Settings(dropout=False),
    "cp4": Settings(dropout=False),
    "uninstall_te": Settings(fused_softmax=False),
}
"""Settings by a part of a test's name, the most special first."""


def settings_of(name: str) -> Settings:
    """The settings of a test."""
    return next((values for part, values in SETTINGS.items() if part in name), Settings())


def with_latent_attention(model: Transformer, latent: Latent) -> Transformer:
    """A model of these sizes with latent attention."""
    heads, width = model.heads, latent.query_rank + latent.cache_rank + latent.rope
    matrices = (
        model.hidden * width
        + latent.query_rank * heads * (latent.key + latent.rope)
        + latent.cache_rank * heads * (latent.key + latent.value)
        + heads * latent.value * model.hidden
    )
    return replace(
        model,
        kv_heads=heads,
        head=latent.key + latent.rope,
        value_head=latent.value,
        attention_weights=matrices,
        norm_weights=model.norm_weights + latent.query_rank + latent.cache_rank,
        latent=width,
    )
