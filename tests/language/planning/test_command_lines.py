"""Layouts as command lines: read back they are the same, and each engine gets its own words."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situate.errors import PlanError
from situate.language.cache import CacheOptions
from situate.language.layout import HOST, Layout
from situate.language.planning.command_lines import ENGINES, Export, flags
from situate.language.planning.flags import parse_flags
from situate.language.planning.workload import Drafting
from tests.language.planning.homes import small_model

MODEL = small_model(layers=6)
DENSE = small_model(mixture=False)
WHOLE = Layout((0, 1), (0, 0, 1, 1), (0, 0, 1, 1), 1)
PARTIAL = Layout((0,), (HOST, 0, 0, 0), (HOST, 0, 0, 0), 0, ubatch=1024)


@st.composite
def layouts(draw):
    gpus = draw(st.integers(1, 4))
    order = draw(
        st.permutations(range(gpus)).flatmap(
            lambda all_: st.integers(0, gpus).map(lambda n: tuple(all_[:n]))
        )
    )
    ends = sorted(draw(st.lists(st.integers(0, 6), min_size=len(order), max_size=len(order))))
    layers: list[int] = []
    for device, end in zip((HOST, *order), (*ends, 6), strict=True):
        layers += [device] * (end - len(layers))
    away = draw(st.lists(st.booleans(), min_size=6, max_size=6))
    experts = [HOST if gone else place for gone, place in zip(away, layers, strict=True)]
    return gpus, Layout(
        order,
        tuple(layers),
        tuple(experts),
        draw(st.sampled_from([HOST, *order])),
        draw(st.booleans()),
        draw(st.sampled_from(["layer", "tensor"])),
        draw(st.sampled_from([128, 512, 4096])),
        draw(st.booleans()),
    )


# Writing a layout and reading its flags gives the layout.
@settings(max_examples=200, deadline=None)
@given(
    drawn=layouts(),
    slots=st.integers(1, 4),
    kind=st.sampled_from(["F16", "Q8_0"]),
    unified=st.booleans(),
)
def test_flags_say_the_layout(drawn, slots, kind, unified):
    gpus, layout = drawn
    options = CacheOptions(8192, kind, kind, layout.ubatch, slots, unified)
    line = shlex.join(flags(layout, options, MODEL, [f"CUDA{i}" for i in range(gpus)]))
    names = [f"card{i}" for i in range(gpus)]
    launch = parse_flags(line, MODEL, names, [1.0] * gpus, CacheOptions(1))
    assert launch.layout == layout
    assert launch.options == options
    assert launch.notes == ()


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


@pytest.mark.parametrize(
    ("engine", "layout"),
    [
        ("vllm", PARTIAL),
        ("exllama", PARTIAL),
        ("ollama", replace(WHOLE, split="tensor")),
        ("ollama", replace(WHOLE, host_cache=True)),
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
