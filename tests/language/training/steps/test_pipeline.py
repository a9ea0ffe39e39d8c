"""Orders of a stage's passes."""

from __future__ import annotations

import pytest

from situate.language.training.layout import Layout
from situate.language.training.steps.pipeline import stage_passes


def text_of(layout: Layout, stage: int, count: int) -> str:
    """The passes of a stage: direction, micro-batch, and chunk if there are several."""
    return " ".join(
        f"{each.direction[0]}{each.micro}{'abcdef'[each.chunk] if layout.vp > 1 else ''}"
        for each in stage_passes(layout, stage, count)
    )


# 1F1B: as many forward passes as there are later stages, then one of each.
@pytest.mark.parametrize(
    ("stage", "passes"),
    [
        (0, "f0 f1 f2 b0 f3 b1 b2 b3"),
        (1, "f0 f1 b0 f2 b1 f3 b2 b3"),
        (2, "f0 b0 f1 b1 f2 b2 f3 b3"),
    ],
)
def test_1f1b(stage, passes):
    assert text_of(Layout(pp=3), stage, 4) == passes


def test_fewer_micro_batches_than_stages():
    assert text_of(Layout(pp=4), 0, 2) == "f0 f1 b0 b1"


# Interleaved 1F1B: groups of micro-batches pass one chunk after the other, and back.
def test_interleaved_1f1b():
    layout = Layout(pp=2, vp=2)
    assert text_of(layout, 1, 2) == "f0a f1a f0b b0b f1b b1b b0a b1a"
    assert text_of(layout, 0, 2) == "f0a f1a f0b f1b b0b b1b b0a b1a"


# Zero bubbles: gradients of weights run as many passes late as stages are before.
def test_zero_bubbles():
    layout = Layout(pp=2, zero_bubble=True)
    assert text_of(layout, 0, 3) == "f0 f1 b0 w0 f2 b1 w1 b2 w2"
    assert text_of(layout, 1, 3) == "f0 b0 f1 b1 w0 f2 b2 w1 w2"


@pytest.mark.parametrize("vp", [1, 2, 4])
@pytest.mark.parametrize("late", [False, True])
def test_every_pass_runs_once(vp, late):
    layout = Layout(pp=4, vp=vp, zero_bubble=late)
    for stage in range(4):
        passes = list(stage_passes(layout, stage, 8))
        assert len(set(passes)) == len(passes) == (3 if late else 2) * 8 * vp
