"""Numbers of text formats."""

from __future__ import annotations

import pytest

from situate.errors import ReadError
from situate.readers.quantity import amount, size, whole


@pytest.mark.parametrize("token", ["-1", "1.5", "x", "", "1_0", "\u0663", "9" * 30])
def test_a_whole_number_is_digits_only(token):
    with pytest.raises(ReadError, match="line 3: must be a whole number"):
        whole(token, "line 3")


@pytest.mark.parametrize("token", ["-1", "nan", "inf", "1e999", "x", "", "1_0"])
def test_an_amount_is_finite_and_not_negative(token):
    with pytest.raises(ReadError, match="line 3: must be a finite number, not negative"):
        amount(token, "line 3")


def test_a_size_is_rounded_up_to_whole_bytes():
    assert size("12.25", "") == 13


def test_a_size_has_a_limit():
    with pytest.raises(ReadError, match="at most 2\\^53"):
        size("1e300", "line 3")
