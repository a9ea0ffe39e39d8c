"""Names of blocks, and the blocks that save most."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.errors import SituateError  # noqa: E402
from situate.torch_capture.recompute.modules import best_cut  # noqa: E402
from tests.torch_capture.recompute.models import graph  # noqa: E402


def chosen_paths(*names):
    return graph(*names).recompute


# Patterns select the outermost modules that save values.
def test_a_star_stands_for_any_text_and_the_outermost_counts():
    assert chosen_paths("layers.*") == ("layers.0", "layers.1", "layers.2")
    assert chosen_paths("layers.2", "layers.0.norm", "layers.0") == ("layers.0", "layers.2")
    assert chosen_paths("*") == ("layers",)


def test_all_are_the_blocks_that_save_most():
    assert chosen_paths("all") == ("layers.0", "layers.1", "layers.2")


def test_an_unknown_module_is_named():
    with pytest.raises(SituateError, match=r"no module .* called 'layer\.1'; .*'layers\.1'"):
        chosen_paths("layers.0", "layer.1")


@pytest.mark.parametrize("name", ["stem", "head", "layers.*.first"])
def test_modules_that_keep_nothing_of_their_own_are_refused(name):
    with pytest.raises(SituateError, match="nothing to run again in '"):
        chosen_paths("layers.0", name)


def test_the_best_cut_balances_what_is_freed_and_the_largest_block():
    paths = ["a", "a.x", "a.y", "b", "c"]
    assert best_cut(paths, {"a": 9, "a.x": 4, "a.y": 4, "b": 4}) == ["a.x", "a.y", "b"]
    assert best_cut(paths, {"a": 9, "a.x": 1, "a.y": 1, "b": 9}) == ["a", "b"]
    assert best_cut(paths, {"a": 500, "b": 500, "c": 4}) == ["a", "b"]
    assert best_cut(paths, {"a": 9}) == []
