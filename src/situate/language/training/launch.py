"""Launch commands of layouts, for the programs that train.

Flags are those of torchtitan (`torchtitan/config/job_config.py`), Megatron-LM
(`megatron/training/arguments.py`), DeepSpeed (its configuration's JSON) and accelerate
(`accelerate launch --help`).
"""

from __future__ import annotations

import json
from collections.abc import Callable

from situate.errors import SituateError
from situate.language.training.gpus import BLACKWELL
from situate.language.training.layout import H2, SCHEDULES, Layout, Run, V, group_size
from situate.language.training.machine import Machine
from situate.language.training.transformer import Transformer

TITAN_CHUNKS = 2
"""Chunks of a stage in torchtitan's interleaved pipelines, where a flag does not say the layers."""


DISTRIBUTED = "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather"
"""Flags of Megatron-LM's ZeRO-1, whose collectives overlap with products, as in the formulas."""

RENDEZVOUS = "--machine_rank $NODE_RANK --main_process_ip $MASTER_ADDR --main_process_port 29500"
"""Flags with which the nodes of accelerate find one another."""

MEGATRON_OPTIMIZERS = {
    "adamw": [],
    "adamw-bf16": ["--use-precision-aware-optimizer --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16"],
    "sgd": ["--optimizer sgd --sgd-momentum 0"],
    "momentum": ["--optimizer sgd"],
}
"""Flags of optimisers, Adam being the default."""


def _torchrun(machine: Machine) -> str:
    nodes = machine.count // machine.node
    rendezvous = " --rdzv-backend=c10d --rdzv-endpoint=$MASTER_ADDR:29500" if nodes > 1 else ""
    return f"torchrun --nnodes={nodes} --nproc-per-node={machine.node}{rendezvous}"


def _megatron(model: Transformer, run: Run, machine: Machine) -> str:
    """A command of Megatron-LM, with the sizes of the model."""
    layout, recipe = run.layout, run.recipe
    _check_recipe(run, "Megatron-LM", "megatron")
    _check_schedule(layout, "Megatron-LM")
    copies = layout.dp // (layout.shard or layout.dp)
    flags = [
        f"--tensor-model-parallel-size {layout.tp}",
        f"--pipeline-model-parallel-size {layout.pp}",
        *([f"--context-parallel-size {layout.cp}"] if layout.cp > 1 else []),
        *([f"--expert-model-parallel-size {layout.ep}"] if layout.ep > 1 else []),
        *([f"--expert-tensor-parallel-size {layout.etp}"] if model.experts else []),
        *(["--sequence-parallel"] if layout.sp else []),
        *([_virtual(model, layout)] if layout.vp > 1 else []),
        f"--micro-batch-size {layout.micro} --global-batch-size {layout.batch}",
        *([DISTRIBUTED] if layout.zero == 1 and not recipe.optimizer.whole else []),
        *([f"--num-distributed-optimizer-instances {copies}"] if copies > 1 else []),
        *(["--optimizer-cpu-offload"] if layout.offload else []),
        *([f"--mtp-num-layers {layout.mtp}"] if layout.mtp else []),
        *_recomputation(model, layout),
        *_precision(run),
        *_optimizer(run),
        *_sizes(model, run),
        *_experts(model),
        f"--vocab-size {model.vocabulary}",
    ]
    return f"{_connections(layout, machine)}{_torchrun(machine)} pretrain_gpt.py {' '.join(flags)}"


def _connections(layout: Layout, machine: Machine) -> str:
    """The variable without which Megatron-LM refuses `tp` and `cp` on GPUs before Blackwell."""
    is_old = not machine.weakest.name.startswith(BLACKWELL)
    return "CUDA_DEVICE_MAX_CONNECTIONS=1 " if is_old and layout.tp * layout.cp > 1 else ""


def _virtual(model: Transformer, layout: Layout) -> str:
    layers = model.layers // (layout.pp * layout.vp)
    flags = f"--num-layers-per-virtual-pipeline-stage {layers}"
    group = group_size(layout.count, layout.pp)
    if group == layout.pp:
        return flags
    return f"{flags} --microbatch-group-size-per-virtual-pipeline-stage {group}"


def _recomputation(model: Transformer, layout: Layout) -> list[str]:
    selective = "--recompute-granularity selective"
    if layout.recompute == "modules":
        modules = [*(["layernorm moe_act"] if model.experts else ["layernorm"])]
        return [f"{selective} --recompute-modules {' '.join(modules)}"]
    if layout.recompute == "full":
        return ["--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"]
    return [] if layout.recompute == "none" else [selective]


def _precision(run: Run) -> list[str]:
    flags = {
        "bf16": ["--bf16"],
        "fp16": ["--fp16"],
        "fp8": ["--bf16", "--fp8-format hybrid"],
        "fp8-rowwise": ["--bf16", "--fp8-format hybrid"],
        "fp4": ["--bf16", "--fp4-format e2m1"],
    }
    return flags.get(run.recipe.precision, [])


def _optimizer(run: Run) -> list[str]:
    """The flags of the optimiser.

    Raises:
        SituateError: Megatron-LM lacks it.
    """
    name, divides = run.recipe.optimizer.name, run.layout.zero == 1
    if name == "muon":
        return [f"--optimizer {'dist_muon' if divides else 'muon'}"]
    if name == "adamw-bf16" and not divides:
        raise SituateError("Megatron-LM has moments in bfloat16 with zero=1 alone")
    if name not in MEGATRON_OPTIMIZERS:
        names = ", ".join(("muon", *MEGATRON_OPTIMIZERS))
        raise SituateError(f"Megatron-LM has no optimizer {name}: take {names}")
    return MEGATRON_OPTIMIZERS[name]


def _sizes(model: Transformer, run: Run) -> list[str]:
    if model.latent:
        raise SituateError("Megatron-LM takes the ranks of latent attention from its own recipes")
    flags = [
        f"--num-layers {model.layers} --hidden-size {model.hidden}",
        f"--num-attention-heads {model.heads} --ffn-hidden-size {model.ffn}",
        f"--seq-length {run.sequence} --max-position-embeddings {run.sequence}",
    ]
    if model.head * model.heads != model.hidden:
        flags.append(f"--kv-channels {model.head}")
    if model.kv_heads != model.heads:
        flags.append(f"--group-query-attention --num-query-groups {model.kv_heads}")
    if model.gated:
        flags.append("--swiglu --normalization RMSNorm --disable-bias-linear")
    if not model.positions:
        flags.append("--position-embedding-type rope")
    if not model.tied:
        flags.append("--untie-embeddings-and-output-weights")
    # The formulas have no masks of dropout; Megatron-LM's default is a tenth.
    return [*flags, "--attention-dropout 0 --hidden-dropout 0"]


def _experts(model: Transformer) -> list[str]:
    if model.experts is None:
        return []
    mixture = model.experts
    flags = [
        f"--num-experts {mixture.count} --moe-router-topk {mixture.used}",
        f"--moe-ffn-hidden-size {mixture.width}",
        "--moe-grouped-gemm --moe-token-dispatcher-type alltoall",
    ]
    if mixture.shared_width:
        flags.append(f"--moe-shared-expert-intermediate-size {mixture.shared_width}")
    if mixture.dense_layers:
        sparse = model.layers - mixture.dense_layers
        flags.append(f"--moe-layer-freq '([0]*{mixture.dense_layers}+[1]*{sparse})'")
    return flags


def _torchtitan(model: Transformer, run: Run, machine: Machine) -> str:
    """A command of torchtitan; its model is chosen by its own name and flavour."""
    layout, recipe = run.layout, run.recipe
    _check_recipe(run, "torchtitan", "fsdp2", "amp")
    if recipe.optimizer.name != "adamw":
        raise SituateError(f"torchtitan has no optimizer {recipe.optimizer.name}: take adamw")
    if layout.zero in (1, 2):
        raise SituateError("torchtitan has no zero=1 or 2: it replicates, or divides all (zero=3)")
    if layout.offload:
        raise SituateError("torchtitan offloads weights too (--training.enable_cpu_offload)")
    shard = layout.shards
    group = shard * layout.cp * layout.tp
    if group % layout.ep:
        raise SituateError(
            f"torchtitan's ep must divide sharded replicas x cp x tp = {group}: take zero=3, or "
            "another ep"
        )
    flags = [
        f"--parallelism.data_parallel_shard_degree {shard}",
        f"--parallelism.data_parallel_replicate_degree {layout.dp // shard}",
        f"--parallelism.tensor_parallel_degree {layout.tp}",
        f"--parallelism.context_parallel_degree {layout.cp}",
        f"--parallelism.pipeline_parallel_degree {layout.pp}",
        *([f"--parallelism.expert_parallel_degree {layout.ep}"] if layout.ep > 1 else []),
        *(_pipeline_schedule(model, layout) if layout.pp > 1 else []),
        f"--training.local_batch_size {layout.micro * (layout.count if layout.pp > 1 else 1)}",
        f"--training.global_batch_size {layout.batch} --training.seq_len {run.sequence}",
        f"--activation_checkpoint.mode {layout.recompute}",
    ]
    if recipe.precision.startswith("fp8"):
        flags.append("--model.converters quantize.linear.float8")
    if recipe.precision == "fp8-rowwise":
        flags.append("--quantize.linear.float8.recipe_name rowwise")
    return (
        f"{_torchrun(machine)} -m torchtitan.train --job.config_file CONFIG.toml {' '.join(flags)}"
    )


def _pipeline_schedule(model: Transformer, layout: Layout) -> list[str]:
    name = "Interleaved1F1B" if layout.vp > 1 else "1F1B"
    if layout.schedule == SCHEDULES[H2]:
        raise SituateError(f"torchtitan has no {layout.schedule}: take zero-bubble-v")
    if layout.late:
        if layout.vp == 1:
            raise SituateError("torchtitan's zero-bubble schedules take several chunks: vp=2")
        is_v = layout.schedule == SCHEDULES[V]
        name = "ZBVZeroBubble" if is_v else "InterleavedZeroBubble"
    return [
        f"--parallelism.pipeline_parallel_schedule {name}",
        f"--parallelism.pipeline_parallel_microbatch_size {layout.micro}",
        *(_layers_per_stage(model, layout) if layout.vp > 1 else []),
    ]


def _layers_per_stage(model: Transformer, layout: Layout) -> list[str]:
    """The flags for other than torchtitan's usual two chunks of a stage.

    The usual count has the embedding and the output as a layer each, which leaves no whole stages
    (`torchtitan/distributed/pipeline_parallel.py`).
    """
    if layout.vp == TITAN_CHUNKS:
        return []
    layers = model.layers // (layout.pp * layout.vp)
    return [
        f"--parallelism.pipeline_parallel_layers_per_stage {layers}",
        "--parallelism.pipeline_parallel_first_stage_less_layers 0",
        "--parallelism.pipeline_parallel_last_stage_less_layers 0",
    ]


def _check_schedule(layout: Layout, program: str) -> None:
    """
    Raises:
        SituateError: the program has no such schedule.
    """
    if layout.late:
        raise SituateError(f"{program} has no zero-bubble schedule: take schedule=1f1b")


def _deepspeed(model: Transformer, run: Run, machine: Machine) -> str:
    """A command of DeepSpeed with its configuration."""
    layout, recipe = run.layout, run.recipe
    _check_recipe(run, "DeepSpeed", "deepspeed")
    _check_schedule(layout, "DeepSpeed")
    _only_replicas(layout, "DeepSpeed", "tp")
    if layout.recompute == "selective":
        raise SituateError(
            "DeepSpeed repeats what train.py checkpoints: take recompute=full or none"
        )
    if layout.shard:
        raise SituateError("DeepSpeed divides states among all replicas: leave shard out")
    if layout.tp > 1 and layout.zero == 3:
        raise SituateError("DeepSpeed's tensor parallelism (autotp_size) excludes zero=3")
    zero: dict[str, object] = {"stage": layout.zero}
    if layout.offload:
        zero["offload_optimizer"] = {"device": "cpu", "pin_memory": True}
    content: dict[str, object] = {
        "train_batch_size": layout.batch,
        "train_micro_batch_size_per_gpu": layout.micro,
        "gradient_accumulation_steps": layout.count,
        "zero_optimization": zero,
        "fp16" if recipe.precision == "fp16" else "bf16": {"enabled": True},
    }
    if layout.tp > 1:
        content["tensor_parallel"] = {"autotp_size": layout.tp}
    nodes = f"--num_nodes {machine.count // machine.node} --num_gpus {machine.node}"
    text = json.dumps(content)
    script = "train.py with gradient checkpointing, " if layout.recompute == "full" else ""
    return f"deepspeed {nodes} train.py --deepspeed_config ds.json  # {script}ds.json: {text}"


def _accelerate(model: Transformer, run: Run, machine: Machine) -> str:
    """A command of accelerate with FSDP2, or with DDP if nothing is divided."""
    layout = run.layout
    _check_recipe(run, "accelerate", "fsdp2", "amp")
    _only_replicas(layout, "accelerate", "tp", "cp")
    mixed = "fp16" if run.recipe.precision == "fp16" else run.recipe.precision
    nodes = machine.count // machine.node
    flags = [
        f"--num_machines {nodes} --num_processes {machine.count}",
        *([RENDEZVOUS] if nodes > 1 else []),
        f"--mixed_precision {mixed} --gradient_accumulation_steps {layout.count}",
    ]
    if layout.recompute == "selective":
        raise SituateError("accelerate repeats whole layers: take recompute=full or none")
    if layout.zero in (1, 2):
        raise SituateError("accelerate divides states by FSDP2 (zero=3), or by DeepSpeed")
    if layout.zero == 3 or layout.tp * layout.cp > 1:
        flags.append("--use_fsdp --fsdp_version 2 --fsdp_auto_wrap_policy TRANSFORMER_BASED_WRAP")
        if layout.recompute == "full":
            flags.append("--fsdp_activation_checkpointing true")
        shard = (layout.shard or layout.dp) if layout.zero == 3 else 1
        flags.append(
            "--use_parallelism_config "
            f"--parallelism_config_dp_shard_size {shard} "
            f"--parallelism_config_dp_replicate_size {layout.dp // shard} "
            f"--parallelism_config_tp_size {layout.tp} --parallelism_config_cp_size {layout.cp}"
        )
    elif machine.count > 1:
        flags.append("--multi_gpu")
    return f"accelerate launch {' '.join(flags)} train.py"


def _check_recipe(run: Run, program: str, *allowed: str) -> None:
    """
    Raises:
        SituateError: the program holds other tensors for each parameter.
    """
    if run.recipe.name not in allowed:
        names = " or ".join(allowed)
        raise SituateError(f"{program} has no recipe {run.recipe.name}: take recipe={names}")


def _only_replicas(layout: Layout, program: str, *allowed: str) -> None:
    """
    Raises:
        SituateError: the layout has a degree that the program lacks.
    """
    for key in ("tp", "cp", "ep", "pp"):
        if getattr(layout, key) > 1 and key not in allowed:
            raise SituateError(f"{program} has no {key}={getattr(layout, key)} for such a model")


PROGRAMS: dict[str, Callable[[Transformer, Run, Machine], str]] = {
    "torchtitan": _torchtitan,
    "Megatron-LM": _megatron,
    "DeepSpeed": _deepspeed,
    "accelerate": _accelerate,
}
"""Programs by name."""


def commands(model: Transformer, run: Run, machine: Machine) -> dict[str, str]:
    """Launch commands by program; a program that cannot run the layout has its reason instead."""
    result = {}
    for name, program in PROGRAMS.items():
        try:
            result[name] = program(model, run, machine)
        except SituateError as error:
            result[name] = f"cannot: {error}"
    return result
