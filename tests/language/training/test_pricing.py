"""Prices of layouts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from situate.language.training.layout import LayoutTable
from situate.language.training.layout_text import parse_layout
from situate.language.training.machine import find_machine
from situate.language.training.memory import MARGIN
from situate.language.training.pricing import price, prices
from tests.language.training.runs import LLAMA_8B, h100


def test_figures_of_a_price_agree():
    run = parse_layout("tp=4,pp=2,batch=32", LLAMA_8B, 16)
    figures = price(LLAMA_8B, run, h100(16))
    assert figures.rate * figures.seconds == figures.tokens == 32 * 4096
    assert figures.fits
    assert figures.bubble == pytest.approx(1 / 17)
    assert 0.1 < figures.utilisation < 0.7
    assert figures.allocated < figures.reserved < figures.capacity


def test_a_layout_without_memory_is_limited_by_a_role():
    run = parse_layout("recipe=amp", LLAMA_8B, 1)
    figures = price(LLAMA_8B, run, find_machine("RTX 4090"))
    assert not figures.fits
    assert figures.limit == "memory: moments"


# A layout fits with room for 99 of 100 runs, and may fit with the predicted bytes alone.
def test_a_layout_near_the_memory_may_fit():
    run = parse_layout("tp=8,batch=8", LLAMA_8B, 8)
    figures = price(LLAMA_8B, run, h100())
    assert figures.reserved < figures.high == MARGIN * figures.reserved
    near = replace(figures, capacity=int(1.04 * figures.reserved))
    assert near.may_fit
    assert not near.fits
    assert not near.limit.startswith("memory")
    assert not replace(figures, capacity=int(0.9 * figures.reserved)).may_fit


def test_a_table_has_the_prices_of_its_layouts():
    run = parse_layout("tp=2,batch=8", LLAMA_8B, 8)
    other = replace(run.layout, tp=4, dp=2)
    table = LayoutTable.of([run.layout, other])
    both = prices(LLAMA_8B, run, h100(), table)
    alone = price(LLAMA_8B, replace(run, layout=other), h100())
    assert both[1].seconds == pytest.approx(alone.seconds)
    assert both[1].reserved == pytest.approx(alone.reserved)
