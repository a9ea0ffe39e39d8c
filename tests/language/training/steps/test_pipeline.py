"""Orders of a stage's passes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from situate.language.training.layout import Layout
from situate.language.training.steps.pipeline import stage_passes

SCHEDULES_AND_CHUNKS = [
    *[(schedule, vp) for schedule in ("1f1b", "zero-bubble") for vp in (1, 2, 4)],
    ("zero-bubble-h2", 1),
    ("zero-bubble-v", 2),
]


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
    layout = Layout(pp=2, schedule="zero-bubble")
    assert text_of(layout, 0, 3) == "f0 f1 b0 w0 f2 b1 w1 b2 w2"
    assert text_of(layout, 1, 3) == "f0 b0 f1 b1 w0 f2 b2 w1 w2"


def test_zb_h2_runs_twice_as_many_early_and_late():
    layout = Layout(pp=2, schedule="zero-bubble-h2")
    assert text_of(layout, 0, 4) == "f0 f1 f2 b0 w0 f3 b1 w1 b2 w2 b3 w3"
    assert text_of(layout, 1, 4) == "f0 b0 f1 b1 f2 b2 w0 f3 b3 w1 w2 w3"


# ZB-V is the order of PyTorch's class, whose ranks need no devices to compute it.
@pytest.mark.parametrize("count", [2, 7, 12])
@pytest.mark.parametrize("stage", range(4))
def test_zb_v_is_pytorch_s(stage, count):
    torch_schedules = pytest.importorskip("torch.distributed.pipelining.schedules")
    like = SimpleNamespace(pp_group_size=4, num_stages=8, _n_microbatches=count)
    cls = torch_schedules.ScheduleZBVZeroBubble
    actions = filter(None, cls._calculate_single_rank_operations(like, stage))
    layout = Layout(pp=4, vp=2, schedule="zero-bubble-v")
    letters = {"forward": "F", "backward": "I", "weight": "W"}
    assert [str(action) for action in actions] == [
        f"{stage if each.chunk == 0 else 7 - stage}{letters[each.direction]}{each.micro}"
        for each in stage_passes(layout, stage, count)
    ]


@pytest.mark.parametrize(("schedule", "vp"), SCHEDULES_AND_CHUNKS)
def test_every_pass_runs_once(schedule, vp):
    layout = Layout(pp=4, vp=vp, schedule=schedule)
    for stage in range(4):
        passes = list(stage_passes(layout, stage, 8))
        assert len(set(passes)) == len(passes) == (3 if layout.late else 2) * 8 * vp
