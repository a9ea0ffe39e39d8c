"""Flags of llama.cpp as layouts: its rules, and bad lines."""

from __future__ import annotations

import pytest

from situate.errors import SituateError
from situate.language.cache import CacheOptions
from situate.language.layout import HOST
from situate.language.planning.flags import parse_flags
from tests.language.planning.homes import small_model

OPTIONS = CacheOptions(4096)


def launch(line, gpus=2, memory=None, mixture=True):
    names = [f"card{i}" for i in range(gpus)]
    return parse_flags(line, small_model(mixture), names, memory or [1] * gpus, OPTIONS)


# Layers: `-ngl`, `-ts`, `-dev`, `-sm`. The output counts as the layer after the last one.
@pytest.mark.parametrize(
    ("line", "layers", "output"),
    [
        ("", (0, 0, 0, 1), 1),
        ("-ngl 99", (0, 0, 0, 1), 1),
        ("-ngl 0", (HOST,) * 4, HOST),
        ("-ngl 1", (HOST,) * 4, 0),
        ("-ngl 3", (HOST, HOST, 0, 0), 1),
        ("--n-gpu-layers 99 --tensor-split 1,4", (0, 1, 1, 1), 1),
        ("-ngl=99 -ts 1/0", (0, 0, 0, 0), 0),
        ("-ts 4", (0, 0, 0, 0), 0),
        ("-dev CUDA1,CUDA0 -ts 2,3", (1, 1, 0, 0), 0),
        ("-dev card1", (1, 1, 1, 1), 1),
        ("-dev none", (HOST,) * 4, HOST),
        ("-sm none -mg 1", (1, 1, 1, 1), 1),
    ],
)
def test_layers_and_the_output_lie_where_llama_cpp_puts_them(line, layers, output):
    layout = launch(line).layout
    assert (layout.layers, layout.output) == (layers, output)
    assert layout.experts == layers


def test_without_shares_layers_follow_the_memory():
    assert launch("", memory=[1, 4]).layout.layers == (0, 1, 1, 1)


# Experts: `-ot`, of which the first match counts, `-cmoe` and `-ncmoe`.
@pytest.mark.parametrize(
    ("line", "experts"),
    [
        ("-dev CUDA0 -ot exps=CPU", (HOST,) * 4),
        ("-dev CUDA0 --cpu-moe", (HOST,) * 4),
        ("-dev CUDA0 --n-cpu-moe 2", (HOST, HOST, 0, 0)),
        (r"-dev CUDA0 -ot 'blk\.(1|3)\.ffn_.*_exps=CPU'", (0, HOST, 0, HOST)),
        (r"-dev CUDA0 -ot 'blk\.1\.=CUDA0,exps=CPU'", (HOST, 0, HOST, HOST)),
        (r"-dev CUDA0 -ot exps=CUDA1", (1, 1, 1, 1)),
    ],
)
def test_overrides_move_experts(line, experts):
    assert launch(line).layout.experts == experts


def test_an_override_moves_the_output():
    assert launch(r"-dev CUDA0 -ot '^output\.weight=CPU'").layout.output == HOST


def test_tensors_that_a_layout_cannot_move_are_noted():
    assert "4 tensors" in launch("-dev CUDA0 -ot ffn_up_exps=CPU -ot attn_output=CPU").notes[0]
    assert len(launch("-dev CUDA0 -ot ffn_up_exps=CPU -ot attn_output=CPU").layout.moved) == 8
    assert not launch("-dev CUDA0 -ot ffn_up_exps=CPU").notes


def test_other_flags_fill_in_the_settings():
    result = launch("-c 8192 -np 2 -ub 1024 -ctk q8_0 -nkvo --no-op-offload -t 8 --no-mmap")
    assert result.options == CacheOptions(8192, "Q8_0", "F16", 1024, 2)
    layout = result.layout
    assert (layout.host_cache, layout.op_offload, layout.ubatch) == (True, False, 1024)
    assert launch("llama-server -m x.gguf -b 256").layout.ubatch == 256
    assert launch("-sm tensor").layout.split == "tensor"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--bogus", "unknown flag '--bogus'"),
        ("-nlg 9", "unknown flag '-nlg'; did you mean '-ngl'"),
        ("-ngl", "-ngl has no value"),
        ("-ngl many", "-ngl 'many': must be a number"),
        ("-ts a,b", "-ts 'a,b': must be shares"),
        ("-ts 0,0", "-ts '0,0': must be shares"),
        ("-ts 1,1,1", "more shares than the 2 GPUs"),
        ("-sm row", "-sm 'row'"),
        ("-dev CUDA7", "unknown device 'CUDA7'"),
        ("-dev CUDA0,CUDA0", "each of them once"),
        ("-sm none -mg 5", "-mg 5"),
        ("-ot exps", "must be PATTERN=BUFFER"),
        ("-ot '(=CPU'", "-ot '\\('"),
        ("-ot exps=DISK", "unknown device 'DISK'"),
        ("-ot 'open", "No closing quotation"),
        ("-ctk q9", "cache type 'Q9'"),
    ],
)
def test_bad_lines_are_refused_in_one_line(line, message):
    with pytest.raises(SituateError, match=message) as error:
        launch(line)
    assert "\n" not in str(error.value)


# Devices have the names of their backends.
@pytest.mark.parametrize(
    ("devices", "name", "gpu"),
    [
        (("ROCm0", "ROCm1"), "ROCm1", 1),
        (("CUDA0", "ROCm0"), "ROCm0", 1),
        (("ROCm0", "ROCm1"), "CUDA1", 1),
        (("SYCL0", "SYCL1"), "card1", 1),
    ],
)
def test_gpus_are_known_by_the_names_of_their_backends(devices, name, gpu):
    names = ["card0", "card1"]
    result = parse_flags(f"-dev {name}", small_model(), names, [1, 1], OPTIONS, devices)
    assert result.layout.order == (gpu,)


def test_a_backend_has_no_more_gpus_than_the_home():
    devices = ("CUDA0", "ROCm0")
    with pytest.raises(SituateError, match="unknown device 'CUDA1'"):
        parse_flags("-dev CUDA1", small_model(), ["a", "b"], [1, 1], OPTIONS, devices)


def test_a_draft_has_no_part_in_the_layout():
    line = "-md d.gguf -devd CUDA1 -ngld 99 --spec-type draft-simple --spec-draft-n-max 3"
    assert launch(line).layout == launch("").layout
