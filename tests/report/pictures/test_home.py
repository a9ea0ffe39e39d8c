"""Pictures of plans of language models."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from situate.errors import MissingExtra, SituateError
from situate.language.planning.drafting import Draft, with_draft
from situate.report.pictures.home import PARTS, device_parts, draw, render
from tests.language.planning.homes import home_with, planner_of, small_model
from tests.report.handmade import HOSTILE

pytest.importorskip("matplotlib.figure")


def planned(**values):
    planner = planner_of(small_model(), home_with((0.08, 400, 25), (2, 100, 4)))
    planner = replace(planner, **values)
    return planner, planner.plan()


# The parts of a bar are the bytes of the plan.
@pytest.mark.parametrize("divided", [False, True])
def test_parts_add_up_to_the_memory_of_each_device(divided):
    planner, plan = planned(divided=divided)
    if divided:
        layers = (0, 0, 1, 1)
        plan = planner.priced(
            replace(
                plan.layout, order=(0, 1), layers=layers, experts=layers, output=1, split="tensor"
            )
        )
    for row, memory in zip(device_parts(planner, plan), plan.memory, strict=True):
        assert set(row) == set(PARTS)
        assert sum(row.values()) == pytest.approx(memory.total + memory.margin, abs=200)


def test_a_draft_has_a_part_of_its_own():
    planner = with_draft(planned()[0], Draft(small_model(False, layers=1), "d.gguf"))
    plan, drafting = planner.plan(), planner.work.drafting
    rows = device_parts(planner, plan)
    names = [processor.name for processor in planner.home.processors]
    assert rows[names.index(drafting.device)]["draft"] >= drafting.bytes > 0
    assert render(planner, plan, "svg") != render(
        replace(planner, home=planned()[0].home), plan, "svg"
    )


# Files: both formats, and names that are no markup.
def test_a_picture_is_an_svg_or_a_png(tmp_path):
    planner, plan = planned()
    draw(planner, plan, tmp_path / "plan.svg")
    ElementTree.fromstring((tmp_path / "plan.svg").read_bytes())
    draw(planner, plan, tmp_path / "plan.png")
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(SituateError, match=r"must end in \.svg or \.png"):
        draw(planner, plan, tmp_path / "plan.pdf")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_shown_as_text(name):
    planner, plan = planned()
    gpus = (replace(planner.home.accelerators[0], name=name), planner.home.accelerators[1])
    home = replace(planner.home, name=name, accelerators=gpus)
    picture = render(replace(planner, home=home), plan, "svg")
    ElementTree.fromstring(picture)
    assert b"<script" not in picture


def test_without_matplotlib_its_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match="report"):
        render(*planned(), "svg")
