"""Programs of published runs: versions and modes of those that situate knows."""

from __future__ import annotations

from dataclasses import replace

from situate.language.training.software import LOSS_BYTES, SOFTWARE, Software

MIB = 2**20

MEGATRON = SOFTWARE["megatron"]

MEGATRON_2021 = Software(
    "megatron-2021",
    "scores",
    dropout=True,
    logit_bytes=6,
    divided_logit_bytes=6,
    loss_bytes=LOSS_BYTES,
    overlap=0.0,
    layer_launch=770e-6,
    softmax_launch=380e-6,
    end_launch=2e-3,
)
"""Before flash attention, scores and masks of dropout stayed in memory. The host's seconds are
those of vTrain's smallest models, whose steps grow by so much with a layer and a micro-batch."""

NEMO = replace(MEGATRON, name="nemo", loss_bytes=12, expert_wait=0.0, sends_copies=False)
"""NeMo's recipes fuse the loss (`cross_entropy_loss_fusion`, Transformer Engine's kernel), which
reads a logit four times and writes it twice. Their dispatchers of tokens, DeepEP and HybridEP, need
no numbers on the host, and send a token once to each GPU."""

MEGATRON_2025 = replace(NEMO, name="megatron-2025", expert_launch=1e-3, expert_passes=16.0)
"""NeMo's containers before 26.06 launched the kernels of experts, and moved tokens, one by one."""

FUSED_EXPERTS = "26.06"
"""The container from which on experts are few kernels."""

ALWAYS = "99"

ALL_TO_ALL = {
    "GPT OSS 120B": {
        "GB200": "26.04.01", "GB300": "26.04.01", "B300": "26.04.01", "B200": ALWAYS, "H100": ALWAYS
    },
    "Qwen3_235B_a22B": {"B200": ALWAYS, "B300": ALWAYS, "H100": ALWAYS},
    "Qwen3_30B_a3B": {"B200": "26.02", "B300": "26.02", "H100": "26.02"},
    "DeepSeekV3": {"B200": "25.11"},
}  # fmt: skip
"""The last container in which a model's recipe dispatches tokens by all-to-all on a GPU
(NVIDIA-NeMo/Megatron-Bridge, `scripts/performance/configs`)."""


def nemo_software(model: str, gpu: str, container: str) -> Software:
    """The software of a recipe of NeMo.

    Args:
        model: as its tables call it.
        gpu: of the run.
        container: its version, such as `26.02.01`.
    """
    software = MEGATRON_2025 if container < FUSED_EXPERTS else NEMO
    if container > ALL_TO_ALL.get(model, {}).get(gpu, ""):
        return software
    return replace(
        software,
        name=f"{software.name}-all-to-all",
        expert_wait=MEGATRON.expert_wait,
        sends_copies=True,
    )


MEGATRON_TESTS = replace(MEGATRON, name="megatron-tests", dropout=True, expert_launch=1e-3)

TORCHTITAN = replace(SOFTWARE["torchtitan"], keeps_outputs=True)
"""PyTorch's pipelines kept all outputs before `step(return_outputs=False)` of late 2025
(pytorch/pytorch#159251)."""

TORCHTITAN_ASYNC = replace(TORCHTITAN, name="torchtitan-async", hidden=0.5)
TORCHTITAN_EAGER = replace(TORCHTITAN, name="torchtitan-eager", logit_bytes=14, layer_launch=400e-6)

COMPOSER = SOFTWARE["composer"]


def test_workspace(hardware: str, deterministic: bool, streams: int) -> int:
    """Bytes of the libraries' workspaces in Megatron-LM's tests.

    Args:
        hardware: of the row.
        deterministic: cuBLAS has `:4096:8`, 32 MiB in each of two threads; its default is 8 MiB
            before Hopper and 32 MiB since then.
        streams: in which Transformer Engine multiplies: four for groups of matrices, three if
            products overlap with their collectives (`_NUM_MAX_UB_STREAMS`).
    """
    old = "A100" in hardware
    cublas = 64 if deterministic or not old else 16
    engine = (4 if old else 32) * streams
    return (cublas + engine + 8) * MIB
