"""Modules whose results meet, as a graph tells of them."""

from __future__ import annotations

from situate.data.graph import Graph, Op, Tensor
from situate.writers.whole_modules import INPUTS, Groups, Modules, below, is_outside, parents


def graph(*ops: tuple[str, str, str], reads: dict[int, tuple[int, ...]]) -> Graph:
    """Ops of a name, kind and module; parameters hold 10 bytes. `reads` are consumers by op."""
    result = tuple(
        Op(name, kind, module=module, persistent=10 * (kind == "parameter"))
        for name, kind, module in ops
    )
    return Graph("g", result, tuple(Tensor(f"t{j}", j, 8, to) for j, to in reads.items()))


SPLIT = graph(
    ("scale", "parameter", ""),
    ("base.token", "parameter", "base"),
    ("base.a.weight", "parameter", "base.a"),
    ("base.a/mm", "op", "base.a"),
    ("base/add", "op", "base"),
    ("base.b.weight", "parameter", "base.b"),
    ("base.b/mm", "op", "base.b"),
    ("mul", "op", ""),
    reads={0: (7,), 1: (4,), 2: (3,), 3: (4,), 4: (6,), 5: (6,), 6: (7,)},
)
"""The sum of a module's result and a parameter of its container goes into another, and is scaled by
a parameter of the outermost module."""


def joined(groups: Groups) -> dict[str, str]:
    return {path: groups.first(path) for path in groups}


def test_what_split_modules_hold_themselves_has_a_path_of_its_own():
    modules = Modules(SPLIT)
    assert modules.paths == ["scale", "base.token", "base.a", "base.b", INPUTS]
    assert (modules.own, modules.root) == ({"scale", "base.token"}, {"scale"})
    assert (modules.bytes_below[""], modules.bytes_below["base"]) == (40, 30)


def test_what_is_added_to_it_goes_with_it_and_what_follows_need_not():
    result = joined(Groups(Modules(SPLIT), largest=0, with_inputs=True))
    assert result["base.token"] == result["base.a"] != result["base.b"]


def test_what_the_outermost_module_holds_is_with_the_inputs():
    result = joined(Groups(Modules(SPLIT), largest=0, with_inputs=False))
    assert result["scale"] == result[INPUTS] == result["base.b"]


RESIDUAL = graph(
    ("first.weight", "parameter", "first"),
    ("first/mm", "op", "first"),
    ("block.a.weight", "parameter", "block.a"),
    ("block.a/mm", "op", "block.a"),
    ("block.b.weight", "parameter", "block.b"),
    ("block.b/mm", "op", "block.b"),
    ("block/add", "op", "block"),
    ("last.weight", "parameter", "last"),
    ("last/mm", "op", "last"),
    reads={0: (1,), 1: (3, 6), 2: (3,), 3: (5,), 4: (5,), 5: (6,), 6: (8,), 7: (8,)},
)


def test_a_block_goes_whole():
    result = joined(Groups(Modules(RESIDUAL), largest=20, with_inputs=True))
    assert result["block.a"] == result["block.b"] == result["block"] != result["first"]


def test_of_one_that_is_too_large_only_the_parts_that_meet_go_together():
    result = joined(Groups(Modules(RESIDUAL), largest=19, with_inputs=True))
    assert result["block.b"] == result["first"] != result["block.a"]
    assert "block" not in result


LABELS = graph(
    ("x", "input", ""),
    ("labels", "input", ""),
    ("inner.a.weight", "parameter", "inner.a"),
    ("inner.a/mm", "op", "inner.a"),
    ("inner/cross_entropy", "op", "inner"),
    reads={0: (3,), 1: (4,), 2: (3,), 3: (4,)},
)
"""A loss that an inner module makes of labels."""


def test_labels_meet_the_results_where_the_inputs_are_or_are_brought_to_them():
    met, free = (Groups(Modules(LABELS), 0, with_inputs) for with_inputs in (True, False))
    assert (joined(met)["inner.a"] == joined(met)[INPUTS], met.moves_inputs) == (True, False)
    assert (joined(free)["inner.a"] == joined(free)[INPUTS], free.moves_inputs) == (False, True)


def test_the_loss_of_the_step_is_in_no_module():
    assert is_outside(Op("loss/mean"))
    assert not is_outside(Op("mean"))
    assert not is_outside(Op("loss/mean", module="loss"))


def test_paths():
    assert parents("a.b.c") == ["", "a", "a.b"]
    assert parents("") == []
    assert below("a.b", "a")
    assert below("a", "")
    assert not below("ab", "a")
    assert not below("a", "a")
