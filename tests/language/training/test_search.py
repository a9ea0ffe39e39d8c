"""The search: every layout is legal, and the fastest is the best of all that fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from situate.errors import SituateError
from situate.language.training.layout import RECOMPUTE, Run, V
from situate.language.training.layout_rules import check_layout
from situate.language.training.machine import find_machine
from situate.language.training.pricing import prices
from situate.language.training.search import default_batch, legal_layouts, search
from tests.language.training.runs import GPT, LLAMA_8B, MIXTRAL, h100, run_of


@pytest.mark.parametrize(
    ("model", "recipe"),
    [(LLAMA_8B, "megatron"), (MIXTRAL, "megatron"), (LLAMA_8B, "fsdp2"), (GPT, "deepspeed")],
)
def test_all_layouts_of_the_search_are_legal(model, recipe):
    run = run_of(recipe)
    table = legal_layouts(model, run, h100(), 16)
    for i in range(len(table)):
        layout = table.layout(i)
        check_layout(Run(layout, run.sequence, run.recipe), model, 8)
        assert layout.batch == 16


def test_the_first_is_the_fastest_that_fits():
    run, machine = run_of(), h100()
    choice = search(LLAMA_8B, run, machine, 16)
    table = legal_layouts(LLAMA_8B, run, machine, 16)
    fitting = [row for row in prices(LLAMA_8B, run, machine, table) if row.fits]
    assert choice.legal == len(table)
    assert choice.fitting == len(fitting)
    assert choice.best[0].seconds == min(row.seconds for row in fitting)
    assert [row.seconds for row in choice.best] == sorted(row.seconds for row in choice.best)


def test_layouts_that_may_fit_are_the_second_choice():
    run, machine = run_of(), h100()
    table = legal_layouts(LLAMA_8B, run, machine, 16)
    least = min(row.reserved for row in prices(LLAMA_8B, run, machine, table))
    small = [replace(gpu, memory=int(1.05 * least)) for gpu in machine.gpus]
    choice = search(LLAMA_8B, run, replace(machine, gpus=tuple(small)), 16)
    assert not choice.sure
    assert choice.best
    assert all(row.may_fit and not row.fits for row in choice.best)


def test_answers_differ_in_their_degrees():
    layouts = [row.run.layout for row in search(LLAMA_8B, run_of(), h100(), 16).best]
    degrees = {(row.dp, row.tp, row.cp, row.ep, row.pp, row.zero) for row in layouts}
    assert len(degrees) == len(layouts)


@pytest.mark.parametrize(("recipe", "expected"), [("fsdp2", {0, 1, 3}), ("megatron", {0})])
def test_zero_bubbles_are_searched_where_the_program_has_them(recipe, expected):
    table = legal_layouts(LLAMA_8B, run_of(recipe), h100(), 16)
    assert set(table.schedule.tolist()) == expected
    assert (table.vp[table.late] > 1).all()
    assert (table.vp[table.schedule == V] == 2).all()


def test_a_model_without_room_has_a_smallest_layout():
    choice = search(LLAMA_8B, run_of("amp"), find_machine("RTX 3060"), 1)
    assert choice.best == []
    assert choice.smallest.reserved > choice.smallest.capacity
    assert choice.smallest.run.layout.recompute == "full"


def test_a_batch_that_nothing_divides_is_refused():
    with pytest.raises(SituateError, match="no layout divides"):
        search(GPT, run_of(sequence=1001), h100(16), 1)


def test_the_batch_grows_with_the_gpus():
    assert default_batch(h100(16)) == 64


def test_experts_are_among_the_replicas_that_torchtitan_shards():
    table = legal_layouts(MIXTRAL, run_of("fsdp2"), h100(16), 16)
    shard = np.where(table.shard > 0, table.shard, table.dp)
    group = np.where(table.zero == 3, shard, 1) * table.cp * table.tp
    assert (group % table.ep == 0).all()
    assert (table.ep > 1).any()


# Megatron-LM repeats modules of mixtures.
@pytest.mark.parametrize(
    ("model", "recipe", "has_modules"),
    [(MIXTRAL, "megatron", True), (MIXTRAL, "fsdp2", False), (LLAMA_8B, "megatron", False)],
)
def test_modules_are_tried_where_the_program_has_them(model, recipe, has_modules):
    table = legal_layouts(model, run_of(recipe), h100(), 16)
    assert (table.recompute == RECOMPUTE.index("modules")).any() == has_modules
