"""Options of a capture."""

from __future__ import annotations

import pytest

from situate.data.capture_options import CaptureOptions
from situate.data.slices import Slices
from situate.errors import SituateError


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"optimizer": "sdg"}, "unknown optimizer 'sdg'"),
        ({"dims": [1]}, "dims: must be a dict"),
        ({"slices": 4}, "slices: must be"),
        ({"recompute": "layers"}, "recompute: must be a list of names"),
        ({"recompute": ["auto", "a"]}, "recompute: auto is chosen for a cluster"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(SituateError, match=message):
        CaptureOptions(**options)


def test_names_of_modules_become_a_tuple():
    assert CaptureOptions(recompute=["a", "b"]).recompute == ("a", "b")
    assert CaptureOptions(recompute=("auto",)).recompute == ("auto",)


# A graph on disk has passed the check of its slices.
def test_a_graph_on_disk_serves_unless_it_is_to_be_fresh_or_unchecked():
    cut = Slices((1, 1))
    assert CaptureOptions().from_cache
    assert CaptureOptions(slices=cut).from_cache
    assert CaptureOptions(check_slices=False).from_cache
    assert not CaptureOptions(fresh=True).from_cache
    assert not CaptureOptions(slices=cut, check_slices=False).from_cache
