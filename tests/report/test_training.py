"""Tables of training layouts, and the same figures for scripts."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

from rich.console import Console

from situate.language.training.fine_tuning import TuningRun, changes, tuning_memory
from situate.language.training.gpus import GPUS
from situate.language.training.launch import commands
from situate.language.training.layout_text import parse_layout
from situate.language.training.machine import find_machine
from situate.language.training.pricing import price
from situate.language.training.search import search
from situate.language.training.unequal import unequal_shares
from situate.report.training import (
    choice_table,
    price_figures,
    price_table,
    tuning_figures,
    tuning_table,
)
from situate.report.training_steps import SimulatedStep
from tests.language.training.runs import GPT, LLAMA_8B, h100, run_of

STEP = SimulatedStep(1200, 0.5, None, 0.4, 0.25, 2**30, 8, 8)


def text(table: Any) -> str:
    stream = io.StringIO()
    Console(file=stream, width=200).print(table)
    return stream.getvalue()


def test_a_price_has_its_time_memory_limit_and_commands():
    run = parse_layout("tp=4,pp=2,batch=32", LLAMA_8B, 16)
    figures = price(LLAMA_8B, run, h100(16))
    output = text(price_table(LLAMA_8B, "h100", figures, commands(LLAMA_8B, run, h100(16)), STEP))
    for part in (
        "8.03 G parameters",
        "tokens/s",
        "MFU",
        "bubble",
        "fits",
        "in the median",
        "each stage",
        "in the program's order",
    ):
        assert part in output
    assert "--tensor-model-parallel-size 4" in output
    values = price_figures(figures)
    assert values["step_seconds"] == sum(values["parts"].values())
    assert values["degrees"]["tp"] == 4
    assert values["fits"] is True
    assert max(values["reserved_by_stage"]) == values["reserved"]


def test_a_layout_without_room_says_how_much_it_lacks():
    run = parse_layout("recipe=amp", LLAMA_8B, 1)
    machine = find_machine("RTX 4090")
    output = text(price_table(LLAMA_8B, "one", price(LLAMA_8B, run, machine), {}, None))
    assert "does not fit" in output
    assert "too much" in output


def test_a_layout_near_the_memory_may_fit():
    run = parse_layout("tp=8,batch=8", LLAMA_8B, 8)
    figures = price(LLAMA_8B, run, h100())
    near = replace(figures, capacity=int(1.04 * figures.reserved))
    assert "may fit" in text(price_table(LLAMA_8B, "one", near, {}, None))
    assert price_figures(near)["may_fit"] is True
    assert price_figures(near)["fits"] is False


def test_a_choice_has_layouts_and_shares():
    machine = find_machine("unequal-24-12")
    run = run_of("amp", 1024)
    choice, shares = search(GPT, run, machine, 32), unequal_shares(GPT, run, machine, 32)
    steps = [("dp=2", 1.0, STEP)]
    output = text(choice_table(GPT, machine, choice, shares, {"program": "line"}, steps))
    for part in ("layouts fit", "dp=", "shares of RTX 3090 + RTX 3060", "equal", "program: line"):
        assert part in output
    assert "planned as graphs" in output


def test_a_choice_without_layouts_names_the_smallest():
    machine = find_machine("RTX 3060")
    choice = search(LLAMA_8B, run_of("amp"), machine, 1)
    assert "no layout fits" in text(choice_table(LLAMA_8B, machine, choice, [], {}, []))


def test_a_fit_has_roles_and_changes():
    run = TuningRun()
    roles, rows = tuning_memory(LLAMA_8B, run), changes(LLAMA_8B, run)
    output = text(tuning_table(LLAMA_8B, GPUS["RTX 4090"], roles, rows))
    for part in ("does not fit", "moments", "LoRA on 4-bit weights", "yes", "no"):
        assert part in output
    values = tuning_figures(GPUS["RTX 4090"], roles, rows)
    assert values["bytes"] == sum(values["memory"].values())
    assert values["fits"] is False
    assert any(row["fits"] for row in values["changes"])
