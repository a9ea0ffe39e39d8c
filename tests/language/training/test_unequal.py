"""Divisions among unequal GPUs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from situate.language.training.machine import find_machine
from situate.language.training.unequal import unequal_shares
from tests.language.training.runs import GPT, LLAMA_8B, run_of


@pytest.fixture(scope="module")
def rows():
    machine = find_machine("unequal-24-12")
    return unequal_shares(GPT, run_of("amp", 1024), machine, 32)


def test_shares_add_up(rows):
    totals = {"samples": 32, "layers": GPT.layers}
    assert {row.way for row in rows} == set(totals)
    for row in rows:
        assert sum(row.shares) == totals[row.way]
        assert min(row.shares) >= 1


def test_shares_by_speed_are_faster_than_equal_ones(rows):
    for way in ("samples", "layers"):
        equal, unequal = (
            next(row for row in rows if row.way == way and row.equal == flag)
            for flag in (True, False)
        )
        assert unequal.seconds < 0.8 * equal.seconds
        # gpu0 is the faster card.
        assert unequal.shares[0] > unequal.shares[1]
        assert len(set(equal.shares)) == 1


def test_every_share_fits_its_gpu(rows):
    machine = find_machine("unequal-24-12")
    assert all(row.fits(machine) for row in rows if row.sure)
    assert all(row.fits(machine, 1.0) for row in rows)


def test_a_way_without_room_for_the_margin_may_fit():
    machine = find_machine("unequal-24-12")
    unsure = 0
    for memory in range(2**29, 2**31, 2**26):
        gpus = tuple(replace(gpu, memory=memory) for gpu in machine.gpus)
        tight = replace(machine, gpus=gpus)
        for row in unequal_shares(GPT, run_of("amp", 1024), tight, 32):
            assert row.fits(tight, 1.0)
            assert row.fits(tight) >= row.sure
            unsure += not row.sure
    assert unsure


def test_a_model_that_no_division_holds_has_none():
    machine = find_machine("24GiB+12GiB")
    assert unequal_shares(LLAMA_8B, run_of("amp", 1024), machine, 8) == []


def test_layers_follow_memory_where_speed_is_equal():
    machine = find_machine("A100-80GB+A100-40GB")
    rows = unequal_shares(LLAMA_8B, run_of("pure", 1024), machine, 8)
    best = next(row for row in rows if row.way == "layers" and not row.equal)
    assert best.fits(machine, 1.0)
