"""Packing of experts, against all subsets."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from situate.language.planning.packing import knapsack, savings_of_spans, spans


@given(
    items=st.lists(st.sampled_from([(3, 2.0), (5, 4.0), (7, 4.5), (2, -1.0)]), max_size=8),
    room=st.integers(0, 30),
)
def test_no_subset_that_fits_is_worth_more(items, room):
    sizes, values = [size for size, _ in items], [value for _, value in items]
    chosen = knapsack(sizes, values, room)
    best = max(
        sum(itertools.compress(values, subset))
        for subset in itertools.product([False, True], repeat=len(items))
        if sum(itertools.compress(sizes, subset)) <= room
    )
    assert sum(itertools.compress(sizes, chosen)) <= room
    assert sum(itertools.compress(values, chosen)) == pytest.approx(best)


def test_of_equal_layers_the_later_ones_keep_their_experts():
    assert knapsack([4, 4, 4], [1.0, 1.0, 1.0], 9) == [False, True, True]


def test_spans_are_sums_between_two_indices():
    sums = spans(np.array([1.0, 2.0, 4.0]))
    assert sums[0].tolist() == [0, 1, 3, 7]
    assert sums[1, 3] == 6
    assert spans(np.array([1.0, 2.0, 4.0]), slice(3, None)).tolist() == [[7], [6], [4], [0]]


# The table of spans has the savings of each span's own knapsack.
@given(
    kinds=st.lists(st.sampled_from([(0, 0.0), (3, 2.0), (5, 4.0)]), min_size=1, max_size=5),
    room=st.integers(0, 20),
)
def test_each_span_packs_the_experts_that_save_most(kinds, room):
    sizes = np.array([size for size, _ in kinds])
    savings = np.array([value for _, value in kinds])
    free = np.full((len(kinds) + 1,) * 2, float(room))
    saved, proved = savings_of_spans(sizes, savings, free, slice(None), whole=True)
    upper, _ = savings_of_spans(sizes, savings, free, slice(None), whole=False)
    assert proved
    for begin, end in itertools.combinations(range(len(kinds) + 1), 2):
        chosen = knapsack(sizes[begin:end].tolist(), savings[begin:end].tolist(), room)
        best = sum(itertools.compress(savings[begin:end], chosen))
        assert saved[begin, end] == pytest.approx(best)
        assert upper[begin, end] >= best - 1e-9
