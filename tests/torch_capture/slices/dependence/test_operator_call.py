"""Numbers among an operator's arguments, and shapes, at the size of a slice and of the batch."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nan

import pytest

from situate.torch_capture.slices.dependence.operator_call import growing, number_relation
from situate.torch_capture.slices.dependence.relation import SHARED, UNKNOWN, ZERO

RATIO = Fraction(8, 6)


# Numbers among arguments relate to the batch by a power of its size.
@pytest.mark.parametrize("power", range(-4, 5))
def test_a_number_has_the_power_with_which_it_grows(power):
    relation = number_relation(6**power, 8**power, RATIO)
    assert relation == SHARED.with_power(-power)


@pytest.mark.parametrize("number", [1, -0.5, inf, nan])
def test_a_number_that_does_not_change_is_shared(number):
    assert number_relation(number, number, RATIO) == SHARED


def test_zero_fits_any_power():
    assert number_relation(0, 0.0, RATIO) == ZERO


@pytest.mark.parametrize("pair", [(6, 9), (0, 8), (6, 0), (6, inf), (6, nan), (6, -8), (6, 6.01)])
def test_a_number_that_changes_in_another_way_is_unknown(pair):
    assert number_relation(*pair, RATIO) == UNKNOWN


def test_dimensions_grow_where_shapes_differ():
    assert growing((4, 3), (8, 3)) == (0,)
    assert growing((4, 4), (8, 8)) == (0, 1)
    assert growing((3,), (8, 3)) == (0, 1)
    assert growing((), ()) == ()
