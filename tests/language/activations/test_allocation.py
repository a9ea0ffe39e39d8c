"""Addresses in compute buffers."""

from __future__ import annotations

import random

from situate.language.activations.allocation import ALIGNMENT, Allocator, Buffer
from situate.language.activations.tensors import Tensor, entry, view


def on_device(*shape: int, sources: tuple[Tensor, ...] = (), in_place: bool = False) -> Tensor:
    tensor = Tensor(shape, sources or (entry((1,)),), in_place=in_place)
    tensor.device = 0
    for source in tensor.sources:
        source.device = 1
    for source in sources:
        source.device = 0
    return tensor


# The smallest hole that holds a tensor, the later one of equal holes, or the end.
def test_a_tensor_takes_the_smallest_hole() -> None:
    buffer = Buffer()
    places = [buffer.take(size) for size in (300, 10, 200, 10, 300)]
    assert places == [0, 300, 310, 510, 520]
    buffer.release(0, 300)
    buffer.release(310, 200)
    assert buffer.take(150) == 310
    assert buffer.take(150) == 0
    assert buffer.take(400) == 820
    assert buffer.peak == 1220


def test_holes_side_by_side_become_one() -> None:
    buffer = Buffer()
    for size in (100, 100, 100, 100):
        buffer.take(size)
    for offset in (0, 200, 100):
        buffer.release(offset, 100)
    assert buffer.take(300) == 0


def test_memory_in_use_never_overlaps() -> None:
    rng, buffer, live = random.Random(1), Buffer(), {}
    for step in range(2000):
        if live and rng.random() < 0.5:
            offset = rng.choice(list(live))
            buffer.release(offset, live.pop(offset))
        else:
            size = rng.randrange(1, 50)
            offset = buffer.take(size)
            assert all(
                offset + size <= other or other + length <= offset for other, length in live.items()
            ), step
            live[offset] = size


# Lifetimes of tensors.
def test_memory_is_free_after_the_last_reader() -> None:
    size = ALIGNMENT // 4
    first = on_device(size)
    second = on_device(size, sources=(first,))
    third = on_device(size, sources=(second,))
    peaks = Allocator(2).run([], [first, second, third])
    assert peaks[0] == 2 * ALIGNMENT


def test_an_op_in_place_takes_over_an_input_that_nobody_else_reads() -> None:
    size = ALIGNMENT // 4
    first = on_device(size)
    second = on_device(size, sources=(first,), in_place=True)
    assert Allocator(2).run([], [first, second])[0] == ALIGNMENT
    first = on_device(size)
    second = on_device(size, sources=(first,), in_place=True)
    third = on_device(size, sources=(first,))
    assert Allocator(2).run([], [first, second, third])[0] == 3 * ALIGNMENT


def test_a_view_keeps_memory_alive_and_has_none_to_give() -> None:
    size = ALIGNMENT // 4
    first = on_device(size)
    other = view(first, (size,))
    other.device = 0
    second = on_device(size, sources=(other,), in_place=True)
    assert Allocator(2).run([], [first, other, second])[0] == 2 * ALIGNMENT
