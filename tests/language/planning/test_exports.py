"""Plans as command lines and configurations: each engine gets its own words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from situate.errors import PlanError
from situate.language.cache import CacheOptions
from situate.language.layout import HOST, Layout
from situate.language.memory import largest_upload
from situate.language.planning.exports import ENGINES, Export, ik_memory_note
from situate.language.planning.workload import Drafting
from tests.language.planning.homes import small_model

DENSE = small_model(mixture=False)
WHOLE = Layout((0, 1), (0, 0, 1, 1), (0, 0, 1, 1), 1)
PARTIAL = Layout((0,), (HOST, 0, 0, 0), (HOST, 0, 0, 0), 0, ubatch=1024)


def export(layout, model=DENSE, **options):
    devices = ("CUDA0", "CUDA1")
    cache = CacheOptions(4096, **options)
    return Export(layout, cache, model, devices, "m.gguf", [8 * 2**30] * 2)


@pytest.mark.parametrize(
    ("engine", "text"),
    [
        ("llamacpp", "llama-server -m m.gguf -ngl 5 -ts 2,3 -c 4096 -np 1 -ub 512"),
        ("ik_llamacpp", "llama-server -m m.gguf -ngl 5 -ts 2,3 -c 4096 -np 1 -ub 512"),
        ("llama-swap", 'cmd: "llama-server -m m.gguf -ngl 5 -ts 2,3 -c 4096'),
        ("ollama", "PARAMETER num_gpu 5"),
        ("vllm", "VLLM_PP_LAYER_PARTITION=2,2 vllm serve m.gguf --max-model-len 4096"),
        ("exllama", "gpu_split: [8.0, 8.0]"),
    ],
)
def test_engines_have_their_own_words(engine, text):
    assert text in ENGINES[engine](export(WHOLE))


def test_ik_llama_cpp_spells_some_flags_otherwise():
    model = small_model()
    layout = replace(PARTIAL, experts=(HOST,) * 4, op_offload=False)
    text = ENGINES["ik_llamacpp"](export(layout, model))
    assert "--cpu-moe" in text
    assert "-op -1,0" in text


# ik_llama.cpp: its buffers are counted by rules, with an upload that finds no gap.
@pytest.mark.parametrize(("gib", "words"), [(8, "by rules they fit"), (0.07, "card0 may lack ")])
def test_memory_of_ik_llama_cpp_is_not_replayed(gib, words):
    layout = Layout((0,), (0,) * 4, (HOST,) * 4, 0)
    whole = replace(export(layout, small_model()), names=("card0", "card1"))
    note = ik_memory_note(replace(whole, memory=[gib * 2**30] * 2))
    assert note.startswith("ik_llama.cpp: buffers of its own graph are not replayed; by rules ")
    assert words in note


def test_an_upload_that_finds_no_gap_may_be_missing():
    model = small_model()
    layout = Layout((0,), (0,) * 4, (HOST,) * 4, 0)
    whole = replace(export(layout, model), names=("card0", "card1"))
    lacks = [
        float(ik_memory_note(replace(whole, layout=one, memory=[0.0] * 2)).split()[14])
        for one in (replace(layout, op_offload=False), layout)
    ]
    assert lacks[1] - lacks[0] >= largest_upload(model, layout) / 2**20 - 1


@pytest.mark.parametrize(
    ("engine", "layout"),
    [
        ("vllm", PARTIAL),
        ("exllama", PARTIAL),
        ("ollama", replace(WHOLE, split="tensor")),
        ("ollama", replace(WHOLE, host_cache=True)),
        ("ollama", replace(WHOLE, moved=(("blk.1.ffn_up_exps.weight", HOST),))),
        ("vllm", replace(WHOLE, moved=(("blk.1.ffn_up_exps.weight", HOST),))),
        ("ik_llamacpp", replace(WHOLE, split="tensor")),
    ],
)
def test_engines_without_a_setting_for_the_plan_are_refused(engine, layout):
    with pytest.raises(PlanError, match=r"export to llamacpp|-sm graph"):
        ENGINES[engine](export(layout))


def test_a_divided_model_runs_in_tensor_parallel():
    text = ENGINES["vllm"](export(replace(WHOLE, split="tensor")))
    assert "--tensor-parallel-size 2" in text
    assert "tensor_parallel: true" in ENGINES["exllama"](export(replace(WHOLE, split="tensor")))


def test_ollama_names_the_cache_in_a_comment():
    text = ENGINES["ollama"](export(PARTIAL, key_type="Q8_0", value_type="Q8_0"))
    assert "# OLLAMA_KV_CACHE_TYPE=q8_0" in text
    assert "PARAMETER num_gpu 4" in text


# Names of devices, and draft models.
def test_devices_have_the_names_of_their_backends():
    layout = replace(WHOLE, order=(1,), layers=(1,) * 4, experts=(1,) * 4)
    mixed = replace(export(layout), devices=("ROCm0", "ROCm1"))
    assert "-dev ROCm1" in ENGINES["llamacpp"](mixed)
    assert "# HIP_VISIBLE_DEVICES=1" in ENGINES["ollama"](mixed)
    assert ENGINES["vllm"](mixed).startswith("HIP_VISIBLE_DEVICES=1 ")
    away = replace(mixed, layout=replace(layout, output=0), devices=("Vulkan0", "Vulkan1"))
    assert "output\\.weight=Vulkan0" in ENGINES["llamacpp"](away)


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ("llamacpp", "-md d.gguf -devd CUDA1 -ngld 99 --spec-type draft-simple"),
        ("llama-swap", "--spec-draft-n-max 3 --port ${PORT}"),
        ("ik_llamacpp", "-md d.gguf -devd CUDA1 -ngld 99 --draft-max 3"),
    ],
)
def test_a_draft_is_named_with_its_device(engine, words):
    drafting = Drafting("d.gguf", "d", "b", 0, 0)
    drafted = replace(export(WHOLE), drafting=drafting, names=("a", "b"))
    assert words in ENGINES[engine](drafted)


def test_a_draft_on_the_host_has_no_layers_on_gpus():
    drafting = Drafting("d.gguf", "d", "cpu", 0, 0)
    drafted = replace(export(WHOLE), drafting=drafting, names=("a", "b"))
    assert "-md d.gguf -ngld 0 " in ENGINES["llamacpp"](drafted)


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ("vllm", '--speculative-config \'{"model": "d.gguf", "num_speculative_tokens": 3}\''),
        ("exllama", 'draft_model_name: "d.gguf"'),
    ],
)
def test_other_engines_name_the_draft_too(engine, words):
    drafted = replace(export(WHOLE), drafting=Drafting("d.gguf", "d", "b", 0, 0))
    assert words in ENGINES[engine](drafted)


def test_ollama_has_no_draft():
    drafted = replace(export(WHOLE), drafting=Drafting("d.gguf", "d", "b", 0, 0))
    with pytest.raises(PlanError, match="no setting for a draft model: export to llamacpp"):
        ENGINES["ollama"](drafted)
