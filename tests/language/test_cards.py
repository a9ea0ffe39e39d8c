"""Cards and CPUs: the table, and the names that it knows."""

from __future__ import annotations

import pytest

from situate.language.cards import ARCHITECTURES, CARDS, cpu_bandwidth, find_card


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("NVIDIA GeForce RTX 3090", "RTX 3090"),
        ("RTX 3090 Ti 24 GB", "RTX 3090 Ti"),
        ("GeForce RTX 4070Ti SUPER", "RTX 4070 Ti Super"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada"),
        ("Tesla P40", "Tesla P40"),
        ("AMD Radeon RX 7900 XTX", "RX 7900 XTX"),
        ("RTX 4090 D", "RTX 4090 D"),
    ],
)
def test_a_card_is_known_by_its_longest_name(model: str, name: str) -> None:
    card = find_card(model)
    assert card is not None
    assert card.name == name


def test_an_unknown_card_has_no_row() -> None:
    assert find_card("abacus 3") is None


def test_every_card_is_found_by_its_own_name_and_has_a_known_architecture() -> None:
    for card in CARDS:
        assert find_card(card.name) == card
        assert card.architecture in ARCHITECTURES


def test_a_cpu_is_limited_by_memory_or_by_cores() -> None:
    assert cpu_bandwidth(50e9, 64) == pytest.approx(0.85 * 50e9, rel=0.02)
    assert cpu_bandwidth(1e12, 2) == pytest.approx(15e9, rel=0.02)
    assert cpu_bandwidth(100e9, 8) < cpu_bandwidth(100e9, 16) < cpu_bandwidth(200e9, 16)
