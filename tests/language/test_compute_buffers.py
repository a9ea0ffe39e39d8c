"""Compute buffers: the published sizes of runs of llama.cpp and ik_llama.cpp."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.homes.models import sizes_of
from situate.language.cache import CacheOptions
from situate.language.compute_buffers import Build, Contents, accelerator_peak, host_peak
from situate.language.hyperparameters import Hyperparameters

MIB = 2**20
IK, OLD = Build("ik_llama.cpp", mask=4), Build(mask=4)
ALL = Contents(attention=True, experts=True, dense=True, output=True)


def sizes(name: str) -> Hyperparameters:
    result = sizes_of(name)
    assert result is not None
    return result


@pytest.mark.parametrize(
    ("model", "contents", "options", "build", "mib"),
    [
        ("GLM Z1 32B", ALL, CacheOptions(32768), IK, 308.0),
        ("Qwen3 235B", Contents(output=True), CacheOptions(16384), OLD, 304.75),
        ("Qwen3 235B", Contents(output=True), CacheOptions(16384), IK, 312.75),
        ("Qwen3 235B", Contents(experts=True), CacheOptions(16384), OLD, 144.0),
        ("Kimi K2", Contents(output=True), CacheOptions(512), Build(flash=False), 334.0),
        (
            "Qwen3 235B",
            Contents(attention=True, down=432 * MIB),
            CacheOptions(32768, "Q8_0", "Q8_0", ubatch=4096),
            IK,
            2096.0,
        ),
        (
            "DeepSeek R1",
            Contents(attention=True, output=True, gate=1906 * MIB),
            CacheOptions(32768, "Q8_0", "Q8_0", ubatch=2048),
            IK,
            4252.0,
        ),
    ],
)
def test_buffers_of_cards_are_as_published(
    model: str, contents: Contents, options: CacheOptions, build: Build, mib: float
) -> None:
    peak = accelerator_peak(sizes(model), options, contents, build)
    assert peak / MIB == pytest.approx(mib, abs=8)


@pytest.mark.parametrize(
    ("model", "experts", "options", "mib"),
    [
        ("GLM Z1 32B", False, CacheOptions(32768), 76.0),
        ("Qwen3 30B", False, CacheOptions(32768), 68.0),
        ("DeepSeek R1", False, CacheOptions(61440, ubatch=4096), 1072.0),
        ("DeepSeek V3", True, CacheOptions(32768), 176.0),
        ("Gemma 3 27b", False, CacheOptions(32768), 138.5),
    ],
)
def test_buffers_that_the_host_stages_inputs_in_are_as_published(
    model: str, experts: bool, options: CacheOptions, mib: float
) -> None:
    contents = Contents(experts=experts)
    assert host_peak(sizes(model), options, contents, IK, True) / MIB == pytest.approx(mib, abs=0.1)


def test_a_cpu_alone_holds_logits_and_the_residual_stream() -> None:
    peak = host_peak(sizes("Qwen3 30B"), CacheOptions(4096), ALL, OLD, False)
    assert peak / MIB == pytest.approx(300.75)


def test_a_long_context_needs_a_larger_buffer_and_fewer_outputs_a_smaller_one() -> None:
    model = sizes("Qwen3 30B")
    short, long = (
        accelerator_peak(model, CacheOptions(c, ubatch=2048), Contents(attention=True), Build())
        for c in (2**15, 2**16)
    )
    # Two bytes of mask for each token of the context and of the ubatch.
    assert long - short == 2 * 2048 * 2**15
    few = replace(OLD, outputs=1)
    options, output = CacheOptions(4096), Contents(output=True)
    assert accelerator_peak(model, options, output, few) < accelerator_peak(
        model, options, output, OLD
    )


def test_a_device_without_a_part_of_the_model_has_no_buffer() -> None:
    assert accelerator_peak(sizes("Qwen3 30B"), CacheOptions(4096), Contents(), Build()) == 0
