"""Programs of devices."""

from __future__ import annotations

from situate.language.training.layout import Layout
from situate.language.training.steps.division import blocks_of, equal_division
from situate.language.training.steps.program import EMBEDDING, EVERY, DeviceProgram, Slot
from tests.language.training.runs import GPT


def program_of(layout: Layout, stage: int = 0, often: bool = False) -> DeviceProgram:
    blocks = blocks_of(equal_division(GPT, layout))
    return DeviceProgram(layout, blocks, stage, layout.count, often)


# Every device begins with its weights and ends with its updates.
def test_ends_of_the_model_are_on_the_ends_of_the_pipeline():
    layout = Layout(pp=2, count=4)
    assert program_of(layout, 0).parts == [EMBEDDING, *range(6)]
    assert program_of(layout, 1).parts == [*range(6, 12), 12]


def test_gradients_follow_the_last_backward_pass():
    slots = program_of(Layout(count=2)).slots
    assert slots[0] == Slot("weights", EMBEDDING, EVERY)
    gradient = slots.index(Slot("gradients", 11, EVERY))
    assert slots[gradient - 1] == Slot("attention.backward", 11, 1)
    assert slots[-1] == Slot("update", 12, EVERY)


def test_passes_go_through_blocks_and_back():
    slots = [slot for slot in program_of(Layout(count=1)).slots if slot.micro == 0]
    assert slots[:3] == [
        Slot("embedding.forward", EMBEDDING, 0),
        Slot("attention.forward", 0, 0),
        Slot("network.forward", 0, 0),
    ]
    assert slots[25] == Slot("head.forward", 12, 0)
    assert slots[26] == Slot("network.backward", 11, 0)
    assert slots[-1] == Slot("embedding.backward", EMBEDDING, 0)


# Weights that every pass gathers come one pass early, and no earlier.
def test_weights_are_gathered_one_pass_early():
    program = program_of(Layout(dp=2, zero=3, count=1), often=True)
    place = program.place
    gather = Slot("gather.forward", 5, 0)
    assert place[gather] < place[Slot("attention.forward", 4, 0)]
    assert program.waits[gather] == Slot("network.forward", 3, 0)
    assert Slot("scatter", 5, 0) in place
