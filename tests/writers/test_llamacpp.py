"""llama.cpp's options."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Sequence
from pathlib import Path

import pytest

from situate.writers.llamacpp import CPU, contiguous, ending, in_order, overrides, shares, write
from tests.report.handmade import schedule
from tests.writers.layered import layered_plan, network


def layers_by_device(options: Sequence[str], layers: int) -> list[int]:
    """The GPU that llama.cpp gives to each layer and to the output, as its loader's source does:
    the last `-ngl` of them go to the first GPU whose cumulated share exceeds theirs."""
    values = dict(zip(options[::2], options[1::2], strict=True))
    on_gpus = min(int(values["-ngl"]), layers + 1)
    begin = layers + 1 - on_gpus
    split = [int(part) for part in values.get("-ts", "1").split(",")]
    bounds = [sum(split[: i + 1]) / sum(split) for i in range(len(split))]
    places = [CPU] * begin
    for layer in range(begin, layers + 1):
        share = (layer - begin) / on_gpus
        places.append(next(i for i, bound in enumerate(bounds) if bound > share))
    return places


# Options place each layer; patterns name those out of order.
@pytest.mark.parametrize(
    "layer_devices",
    [
        [0] * 5,
        [0, 0, 0, 1, 1, 2],
        [CPU, CPU, 0, 0, 1],
        [*[0] * 11, *[1] * 7, *[2] * 13, *[3]],
        [*[CPU] * 3, *[0] * 29, *[1] * 17, *[2] * 31],
    ],
)
def test_every_layer_goes_where_it_should_and_the_output_with_the_last(layer_devices: list[int]):
    result = layers_by_device(shares(layer_devices, max(layer_devices) + 1), len(layer_devices))
    assert result == [*layer_devices, layer_devices[-1]]


def test_all_layers_on_the_cpu():
    assert shares([CPU] * 4, 0) == ["-ngl", "0"]
    assert overrides([CPU] * 4, [CPU] * 4, {}) == []


def test_the_output_alone_on_a_gpu(tmp_path: Path):
    assert layers_by_device(shares([CPU] * 4, 2, 1), 4) == [CPU] * 4 + [1]
    problem = network(kinds=("cpu", "gpu", "gpu"))
    write(problem, schedule(problem, [0] * 8 + [2]), tmp_path / "run.sh")
    assert (tmp_path / "run.sh").read_text().splitlines()[1:] == [
        "# net on c: gpu2",
        "export CUDA_VISIBLE_DEVICES=1",
        'exec "$@" -ngl 1 -sm layer -ts 1',
    ]


def test_layers_on_the_cpu_behind_others_go_by_name():
    layer_devices = [CPU, 0, CPU, 1, CPU]
    base = contiguous(layer_devices, 2)
    assert layers_by_device(shares(base, 2), 5) == [CPU, 0, 0, 1, 1, 1]
    assert overrides(layer_devices, base, {}) == ["-ot", r"blk\.(2|4)\.=CPU"]


@pytest.mark.parametrize(
    ("layer_devices", "base", "by_name"),
    [
        ([0, 0, 1, 1, 0], [0, 0, 1, 1, 1], [r"blk\.(4)\.=CUDA0"]),
        ([0, 1, 0, 0], [0, 0, 0, 0], [r"blk\.(1)\.=CUDA1"]),
        ([0, 1, CPU, 0, 1, 1], [0, 0, 0, 0, 1, 1], [r"blk\.(1)\.=CUDA1", r"blk\.(2)\.=CPU"]),
        ([1, 0, 1, 0], [0, 0, 0, 0], [r"blk\.(0|2)\.=CUDA1"]),
    ],
)
def test_layers_that_come_back_to_a_gpu_go_by_name(
    layer_devices: list[int], base: list[int], by_name: list[str]
):
    """As few as can be; the others are contiguous on each GPU."""
    assert contiguous(layer_devices, 2) == base
    assert layers_by_device(shares(base, 2), len(layer_devices))[:-1] == base
    assert overrides(layer_devices, base, {})[1::2] == by_name


def placement_of(options: Sequence[str], layers: int) -> list[int]:
    """The GPU that llama.cpp gives each layer, by `-ts` and the first `-ot` that matches it."""
    result = layers_by_device(options[:6], layers)[:-1]
    patterns = [word.rpartition("=") for word in options[7::2]]
    for layer in range(layers):
        fits = (to for pattern, _, to in patterns if re.search(pattern, f"blk.{layer}.attn_q"))
        there = next(fits, None)
        result[layer] = CPU if there == "CPU" else int(there[4:]) if there else result[layer]
    return result


@pytest.mark.parametrize("seed", range(20))
def test_any_layers_are_where_the_plan_has_them(seed: int):
    layer_devices = random.Random(seed).choices([CPU, 0, 1, 2], k=9)
    base = contiguous(layer_devices, 3)
    options = [*shares(base, 3), *overrides(layer_devices, base, {})]
    assert placement_of(options, 9) == layer_devices


def test_gpus_are_in_the_order_that_leaves_most_layers_in_one_piece():
    assert in_order([4, 5, 4, 4, 9, 5, 5], others=[9, 6, 5], gpus=[4, 5, 6]) == [4, 5, 6]
    assert in_order([5, 4, 5, 9, 4, 4], others=[], gpus=[4, 5]) == [5, 4]
    assert in_order([4, 5, 5, 5, 4, 4, 4], others=[], gpus=[4, 5]) == [5, 4]


# Experts and outputs have patterns of their own.
def test_experts_go_by_name_before_layers():
    layer_devices = [0, 0, CPU, 0]
    result = overrides(layer_devices, contiguous(layer_devices, 1), {0: CPU, 1: 0, 2: 1, 3: CPU})
    assert result == [
        *("-ot", r"blk\.(0|3)\.ffn_.*_exps=CPU"),
        *("-ot", r"blk\.(2)\.ffn_.*_exps=CUDA1"),
        *("-ot", r"blk\.(2)\.=CPU"),
    ]


def test_patterns_match_their_layers_tensors_alone():
    pattern = overrides([0] * 11, [0] * 11, {1: CPU})[1].removesuffix("=CPU")
    assert re.search(pattern, "blk.1.ffn_gate_exps.weight")
    assert not re.search(pattern, "blk.10.ffn_gate_exps.weight")
    assert not re.search(pattern, "blk.1.ffn_gate_shexp.weight")


@pytest.mark.parametrize(
    ("layer_devices", "output", "options"),
    [
        ([0, 1], [1], []),
        ([0, 1], [], []),
        ([CPU, CPU], [0], []),
        ([0, CPU], [0], []),
        ([0, CPU], [CPU], ["-ot", "^output=CPU"]),
        ([0, 1], [0], ["-ot", "^output=CUDA0"]),
    ],
)
def test_an_output_that_is_not_with_the_last_gpus_layers_goes_by_name(
    layer_devices: list[int], output: list[int], options: list[str]
):
    assert ending(contiguous(layer_devices, 2), output) == options


# Whole scripts from plans.
@pytest.mark.parametrize("sizes", [(9, 8), (8, 9)])
def test_a_plan_as_a_script(tmp_path: Path, sizes: tuple[int, int]):
    """Also where the experts are most of a layer."""
    paths = [f"layers.{i}.{part}" for i in range(4) for part in ("attention", "mlp.experts.0")]
    problem = network(paths, kinds=("cpu", "gpu", "gpu"), persistent=[*sizes] * 4)
    with pytest.warns(UserWarning, match="splits 2 modules"):
        write(problem, schedule(problem, [2, 2, 2, 0, 1, 1, 1, 0]), tmp_path / "run.sh")
    assert (tmp_path / "run.sh").read_text().splitlines() == [
        "#!/bin/sh",
        "# net on c: gpu2, gpu1",
        "export CUDA_VISIBLE_DEVICES=1,0",
        r"""exec "$@" -ngl 5 -sm layer -ts 2,3 -ot 'blk\.(1|3)\.ffn_.*_exps=CPU'""",
    ]


def test_a_plan_that_comes_back_to_a_gpu(tmp_path: Path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write(*layered_plan([0, 0, 0, 1, 0, 0, 0, 1, 0]), tmp_path / "run.sh")
    last = (tmp_path / "run.sh").read_text().splitlines()[-1]
    assert last.startswith(r"""exec "$@" -ngl 7 -sm layer -ts 7,0 -ot 'blk\.(2)\.=CUDA1'""")


def test_a_script_that_does_not_fit_says_by_how_much(tmp_path: Path):
    """The layer that the plan splits goes whole."""
    paths = ("layers.0", "layers.1.a", "layers.1.b", "layers.2")
    problem = network(paths, kinds=("gpu", "gpu"), persistent=(20, 20, 19, 20), memory=60)
    plan = schedule(problem, [0, 1, 0, 1])
    assert plan.feasible(problem)
    with pytest.warns(UserWarning, match="the script does not fit: gpu1 by 15 B"):
        write(problem, plan, tmp_path / "run.sh")
