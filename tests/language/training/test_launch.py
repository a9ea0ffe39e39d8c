"""Launch commands name the degrees of a layout, or the reason that a program lacks them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from situate.language.training.launch import PROGRAMS, commands
from situate.language.training.layout_text import parse_layout
from situate.language.training.machine import find_machine
from tests.language.training.runs import LLAMA_8B, MIXTRAL, h100


def lines(text: str, model=LLAMA_8B, gpus: int = 16) -> dict[str, str]:
    return commands(model, parse_layout(text, model, gpus), h100(gpus))


def test_megatron_has_all_degrees():
    line = lines("dp=2,tp=4,pp=2,vp=4,micro=1,batch=64,recompute=selective")["Megatron-LM"]
    for flag in (
        "torchrun --nnodes=2 --nproc-per-node=8",
        "--tensor-model-parallel-size 4",
        "--pipeline-model-parallel-size 2",
        "--num-layers-per-virtual-pipeline-stage 4",
        "--sequence-parallel",
        "--micro-batch-size 1 --global-batch-size 64",
        "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather",
        "--swiglu --normalization RMSNorm --disable-bias-linear",
        "--position-embedding-type rope",
        "--vocab-size 128256",
        "--recompute-granularity selective",
        "--group-query-attention --num-query-groups 8",
    ):
        assert flag in line


def test_megatron_has_one_connection_for_degrees_inside_a_layer_before_blackwell():
    variable = "CUDA_DEVICE_MAX_CONNECTIONS=1 torchrun"
    assert lines("tp=2")["Megatron-LM"].startswith(variable)
    assert lines("cp=2")["Megatron-LM"].startswith(variable)
    assert lines("pp=2")["Megatron-LM"].startswith("torchrun")
    run = parse_layout("tp=2", LLAMA_8B, 8)
    for name in ("8xB200", "8xRTX 5090"):
        line = commands(LLAMA_8B, run, find_machine(name))["Megatron-LM"]
        assert line.startswith("torchrun")


def test_megatron_has_the_size_of_groups_of_micro_batches_unless_it_is_pp():
    flag = "--microbatch-group-size-per-virtual-pipeline-stage"
    assert f"{flag} 5" in lines("pp=4,vp=2,batch=20")["Megatron-LM"]
    assert flag not in lines("pp=4,vp=2,batch=32")["Megatron-LM"]


def test_megatron_has_experts():
    line = lines("ep=8,cp=2", MIXTRAL)["Megatron-LM"]
    assert "--expert-model-parallel-size 8 --expert-tensor-parallel-size 1" in line
    assert "--context-parallel-size 2" in line
    assert "--num-experts 8 --moe-router-topk 2" in line


def test_megatron_names_the_modules_that_it_repeats():
    line = lines("ep=8,recompute=modules", MIXTRAL)["Megatron-LM"]
    assert "--recompute-granularity selective --recompute-modules layernorm moe_act" in line


def test_megatron_has_shared_experts_and_dense_layers():
    mixture = replace(MIXTRAL.experts, shared_width=2048, dense_layers=3)
    line = lines("ep=8", replace(MIXTRAL, experts=mixture), 8)["Megatron-LM"]
    assert "--moe-shared-expert-intermediate-size 2048" in line
    assert "--moe-layer-freq '([0]*3+[1]*29)'" in line


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("tp=8,optimizer=sgd", "--optimizer sgd --sgd-momentum 0"),
        ("tp=8,optimizer=muon", "--optimizer dist_muon"),
        ("tp=8,optimizer=muon,zero=0", "--optimizer muon"),
        ("dp=16,optimizer=adamw-bf16", "--exp-avg-dtype bf16"),
        ("dp=16,optimizer=adamw-bf16,zero=0", "cannot: Megatron-LM has moments in bfloat16"),
        ("tp=8,optimizer=adafactor", "cannot: Megatron-LM has no optimizer adafactor"),
    ],
)
def test_megatron_has_the_optimizer(text, flags):
    assert flags in lines(text)["Megatron-LM"]


def test_muon_replaces_the_distributed_optimizer():
    assert "use-distributed-optimizer" not in lines("tp=8,optimizer=muon")["Megatron-LM"]


def test_megatron_has_further_predictions():
    assert "--mtp-num-layers 1" in lines("tp=8,mtp=1")["Megatron-LM"]


def test_torchtitan_has_schedules_of_pipelines():
    text = "pp=4,tp=4,vp=2,recipe=fsdp2,batch=16"
    flag = "--parallelism.pipeline_parallel_schedule"
    assert f"{flag} Interleaved1F1B" in lines(text)["torchtitan"]
    assert f"{flag} InterleavedZeroBubble" in lines(f"{text},schedule=zero-bubble")["torchtitan"]
    assert f"{flag} ZBVZeroBubble" in lines(f"{text},schedule=zero-bubble-v")["torchtitan"]


def test_torchtitan_takes_layers_for_other_than_two_chunks():
    flag = "pipeline_parallel_layers_per_stage"
    two, four = (lines(f"pp=2,tp=8,vp={vp},recipe=fsdp2,batch=16")["torchtitan"] for vp in (2, 4))
    assert flag not in two
    assert f"{flag} 4" in four
    assert "pipeline_parallel_last_stage_less_layers 0" in four


def test_torchtitan_shards_or_replicates():
    shard = lines("dp=16,recipe=fsdp2,precision=fp8,micro=2,recompute=full")["torchtitan"]
    assert "--parallelism.data_parallel_shard_degree 16" in shard
    assert "--activation_checkpoint.mode full" in shard
    assert "quantize.linear.float8" in shard
    pipeline = lines("pp=2,tp=8,recipe=fsdp2,micro=1,batch=8,zero=0")["torchtitan"]
    assert "--parallelism.pipeline_parallel_schedule 1F1B" in pipeline
    assert "--training.local_batch_size 8" in pipeline


def test_torchtitan_has_experts_among_sharded_replicas():
    assert "expert_parallel_degree 8" in lines("ep=8,recipe=fsdp2", MIXTRAL)["torchtitan"]
    line = lines("ep=8,recipe=fsdp2,zero=0", MIXTRAL)["torchtitan"]
    assert line.startswith("cannot: ")
    assert "cp x tp = 1: take zero=3" in line


def test_hybrid_sharding_has_its_flags():
    titan = lines("dp=16,shard=8,recipe=fsdp2")["torchtitan"]
    assert "shard_degree 8 --parallelism.data_parallel_replicate_degree 2" in titan
    assert "--num-distributed-optimizer-instances 2" in lines("dp=16,shard=8")["Megatron-LM"]


def test_deepspeed_has_its_configuration():
    line = lines("recipe=deepspeed,zero=2,offload=on,micro=2,batch=64")["DeepSpeed"]
    content = json.loads(line.partition("ds.json: ")[2])
    assert content["train_batch_size"] == 64
    assert content["gradient_accumulation_steps"] == 2
    assert content["zero_optimization"]["stage"] == 2
    assert content["zero_optimization"]["offload_optimizer"]["device"] == "cpu"


def test_deepspeed_leaves_recomputation_to_the_script():
    line = lines("recipe=deepspeed,recompute=full")["DeepSpeed"]
    assert "train.py with gradient checkpointing, ds.json" in line


def test_nodes_of_accelerate_have_an_address():
    flags = "--machine_rank $NODE_RANK --main_process_ip $MASTER_ADDR --main_process_port 29500"
    assert flags in lines("dp=16,recipe=fsdp2")["accelerate"]
    assert flags not in lines("dp=8,recipe=fsdp2", gpus=8)["accelerate"]


def test_accelerate_has_fsdp2_or_ddp():
    assert "--fsdp_version 2" in lines("recipe=fsdp2,tp=2,dp=8")["accelerate"]
    assert "--multi_gpu" in lines("recipe=amp")["accelerate"]


@pytest.mark.parametrize(
    ("text", "program", "reason"),
    [
        ("recipe=fsdp2,pp=2", "accelerate", "accelerate has no pp=2"),
        ("recipe=deepspeed,pp=2,zero=1", "DeepSpeed", "DeepSpeed has no pp=2"),
        ("recipe=amp", "Megatron-LM", "no recipe amp"),
        ("recipe=fsdp2", "Megatron-LM", "no recipe fsdp2: take recipe=megatron"),
        ("recipe=megatron", "torchtitan", "take recipe=fsdp2 or amp"),
        ("recipe=megatron", "DeepSpeed", "take recipe=deepspeed"),
        ("recipe=fsdp2,zero=1", "torchtitan", "torchtitan has no zero=1 or 2"),
        ("recipe=fsdp2,zero=2", "accelerate", "FSDP2"),
        ("recipe=deepspeed,zero=3,tp=2", "DeepSpeed", "excludes zero=3"),
        ("recipe=fsdp2,recompute=selective", "accelerate", "take recompute=full or none"),
        ("recipe=deepspeed,recompute=selective", "DeepSpeed", "take recompute=full or none"),
        ("recipe=fsdp2,optimizer=muon", "torchtitan", "no optimizer muon: take adamw"),
        ("pp=4,schedule=zero-bubble", "Megatron-LM", "no zero-bubble schedule"),
        ("pp=4,schedule=zero-bubble,recipe=deepspeed,zero=1", "DeepSpeed", "no zero-bubble"),
        ("pp=4,schedule=zero-bubble-h2,recipe=fsdp2", "torchtitan", "take zero-bubble-v"),
        ("pp=4,schedule=zero-bubble,recipe=fsdp2", "torchtitan", "take several chunks: vp=2"),
    ],
)
def test_a_program_without_the_layout_says_why(text, program, reason):
    line = lines(text)[program]
    assert line.startswith("cannot: ")
    assert reason in line


def test_every_program_has_a_line():
    assert set(lines("tp=2")) == set(PROGRAMS)
