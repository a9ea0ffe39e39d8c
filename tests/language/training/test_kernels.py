"""Seconds of kernels against their limits."""

from __future__ import annotations

import numpy as np
import pytest

from situate.language.training.gpus import GPUS
from situate.language.training.kernels import (
    ROWWISE,
    attention_seconds,
    pass_seconds,
    product_rate,
    product_seconds,
)

A100, H100, T4 = GPUS["A100-80GB"], GPUS["H100"], GPUS["T4"]
MANY = np.array([16384.0])


def test_large_products_reach_the_sustained_rate():
    seconds = product_seconds(A100, "bfloat16", MANY, 16384.0, 16384.0)[0]
    rate = 2 * 16384**3 / seconds
    assert 0.9 * product_rate(A100, "bfloat16") < rate <= product_rate(A100, "bfloat16")


def test_a_product_takes_a_wave_of_tiles_at_least():
    small = product_seconds(A100, "bfloat16", np.array([128.0, 1024.0]), 128.0, 4096.0)
    assert small[0] > 2 * 128 * 128 * 4096 / product_rate(A100, "bfloat16") * 50


def test_types_without_units_run_in_16_bits():
    assert product_rate(A100, "float8_e4m3fn") == product_rate(A100, "bfloat16")
    assert product_rate(T4, "bfloat16") == pytest.approx(T4.sustained * 65e12)
    assert product_rate(H100, "float8_e4m3fn") > product_rate(H100, "bfloat16")


def test_scales_of_rows_take_as_long_as_16_bits():
    rowwise, half = (
        product_seconds(H100, k, MANY, 4096.0, 4096.0)[0] for k in (ROWWISE, "bfloat16")
    )
    assert half < rowwise < 1.3 * half


def test_flash_attention_is_faster_than_scores():
    pairs = np.array([1e9])
    flash = attention_seconds(A100, pairs, 256, "flash", 20 * pairs)
    scores = attention_seconds(A100, pairs, 256, "scores", 20 * pairs)
    assert flash[0] < scores[0]
    assert flash[1] == 2.5 * flash[0]


def test_scores_go_through_memory_more_often_backwards():
    none, all_scores = (
        attention_seconds(A100, np.array([0.0]), 256, "scores", np.array([scores]))
        for scores in (0.0, 2039e9 * 0.8)
    )
    assert (none[0][0], none[1][0]) == (0, 0)
    assert (all_scores[0][0], all_scores[1][0]) == pytest.approx((6.5, 9.5))


def test_the_old_kernel_is_half_as_fast_on_hopper_alone():
    pairs = np.array([1e9])
    for gpu, times in ((A100, 1), (H100, 2)):
        new, old = (attention_seconds(gpu, pairs, 256, k, pairs)[0] for k in ("flash", "flash2"))
        assert old[0] == times * new[0]


def test_passes_over_memory_take_its_bandwidth():
    assert pass_seconds(A100, np.array([2039e9 * 0.8]))[0] == pytest.approx(1)
