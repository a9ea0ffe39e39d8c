"""Plans of language models in the terminal."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

from rich.console import Console

from situate.language.layout import HOST
from situate.language.planning.rivals import rivals
from situate.report.language_plan import Answer, comparison_table, plan_figures, plan_table
from tests.language.planning.homes import home_with, planner_of, small_model


def text_of(renderable) -> str:
    console = Console(file=StringIO(), width=160)
    console.print(renderable)
    return console.file.getvalue()


def planned():
    planner = planner_of(small_model(), home_with((4, 400, 25), (2, 100, 4)))
    return planner, planner.plan()


# Text and plain values show the same plan.
def test_a_plan_has_its_devices_rates_and_command():
    planner, plan = planned()
    text = text_of(plan_table(Answer(planner, plan, {}, None, [], [], "llama-server -m m")))
    assert "small on home" in text
    assert f"{1 / plan.speed.decode:,.0f} tokens/s" in text
    assert "gpu0 0-3" in text
    assert text.rstrip().endswith("llama-server -m m")


def test_divided_experts_are_named_with_their_layer():
    planner, plan = planned()
    layout = replace(plan.layout, moved=(("blk.2.ffn_down_exps.weight", HOST),))
    text = text_of(plan_table(Answer(planner, planner.priced(layout), {}, None, [], [], "")))
    assert "down experts of layer 2 in host memory" in text
    assert "no room for another layer from host memory" in text


def test_the_gap_of_a_mixture_counts_whole_experts():
    for mixture, words in ((True, "with whole experts"), (False, "that flags can say")):
        planner = planner_of(small_model(mixture), home_with((4, 400, 25)))
        text = text_of(plan_table(Answer(planner, planner.plan(), {}, None, [], [], "")))
        assert f"optimal to the best plan {words}" in text


def test_figures_are_those_of_the_plan():
    planner, plan = planned()
    figures = plan_figures(Answer(planner, plan, {}, 0.5 * plan.seconds, [], [], "command"))
    assert figures["seconds"] == plan.seconds
    assert figures["decode_tokens_per_second"] == 1 / plan.speed.decode
    assert figures["layers"] == ["gpu0"] * 4


def test_names_are_shown_without_control_characters():
    planner, plan = planned()
    home = replace(planner.home, name="a\x1b[31mb\nc")
    text = text_of(plan_table(Answer(replace(planner, home=home), plan, {}, None, [], [], "")))
    assert "\x1b[31mb" not in text


def test_the_fastest_layout_comes_first():
    planner, plan = planned()
    text = text_of(comparison_table(planner, [*rivals(planner), ("plan", plan)]))
    assert text.index("plan ") < text.index("experts on CPU")


def test_a_layout_that_does_not_fit_names_the_device_that_lacks_memory():
    small = planner_of(small_model(), home_with((0.02, 400, 25)))
    _, plan = planned()
    unfit = small.priced(replace(plan.layout, order=(0,)))
    assert "no: gpu0 lacks" in text_of(comparison_table(small, [("unfit", unfit)]))
