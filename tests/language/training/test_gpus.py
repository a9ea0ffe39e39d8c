"""GPUs by the names that people write."""

from __future__ import annotations

import pytest

from situate.language.training.gpus import GPUS, find_gpu, unknown_gpu


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("H100-SXM5-80GB", "H100"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("4090", "RTX 4090"),
        ("A100", "A100-80GB"),
        ("Tesla T4", "T4"),
        ("GB200", "GB200"),
    ],
)
def test_a_gpu_is_known_by_parts_of_its_name(text, name):
    assert find_gpu(text) == GPUS[name]


def test_cards_of_the_other_table_have_rates_of_their_generation():
    card = find_gpu("RTX 4070")
    assert card.memory == 12 * 2**30
    assert card.rate("bfloat16") == pytest.approx(233e12 / 4)


def test_a_whole_name_has_nothing_beside_it():
    assert find_gpu("H1000", whole=True) is None
    assert find_gpu("abacus") is None


def test_a_message_names_only_gpus_of_one_family():
    assert unknown_gpu("H150") == "no GPU 'H150' in the table; did you mean 'H100'?"
    for text in ("MI300X", "M3 Max", "24"):
        assert unknown_gpu(text) == f"no GPU {text!r} in the table: give its memory, such as 24GiB"


def test_rates_grow_with_fewer_bits():
    for gpu in GPUS.values():
        half, eighth = gpu.rate("bfloat16"), gpu.rate("float8_e4m3fn")
        assert eighth == 0 or eighth == pytest.approx(2 * half, rel=0.05)
