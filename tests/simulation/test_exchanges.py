"""The exchanges of a step in parts."""

from __future__ import annotations

from collections import Counter

import pytest

from situate.data.graph import Graph
from situate.simulation.exchanges import Exchange, exchanges
from tests.simulation.exchanged import exchanged


def only(graph: Graph) -> Exchange:
    [exchange] = exchanges(graph)
    return exchange


def names(graph: Graph, ops: tuple[int, ...]) -> list[str]:
    return [graph.ops[j].name for j in ops]


# Each form of an exchange has the name of its collective, in any number of parts.
@pytest.mark.parametrize("parts", [2, 3, 4, 8])
@pytest.mark.parametrize("kind", ["all_gather", "reduce_scatter", "all_reduce", "all_to_all"])
def test_an_exchange_has_the_name_of_its_collective(kind: str, parts: int) -> None:
    exchange = only(exchanged(kind, parts))
    assert exchange.kind == kind
    assert len(exchange.sources) == len(exchange.results) == parts


@pytest.mark.parametrize("parts", [4, 5])
def test_sums_of_pairs_are_one_exchange(parts: int) -> None:
    assert only(exchanged("reduce_scatter", parts, is_tree=True)).kind == "reduce_scatter"


def test_small_partial_results_that_all_parts_add_up_are_an_all_reduce() -> None:
    assert only(exchanged("small_all_reduce", 3)).kind == "all_reduce"


# An exchange has all its ops: a part's slices, sums and concatenations, but no op around them.
def test_an_exchange_has_all_its_ops() -> None:
    graph = exchanged("reduce_scatter", 3)
    exchange = only(graph)
    own = [name for part in exchange.ops for name in names(graph, part)]
    assert sorted(own) == sorted(
        op.name for op in graph.ops if op.kind in ("aten.clone", "aten.add")
    )
    assert all(graph.ops[j].part == part for part, own in enumerate(exchange.ops) for j in own)


def test_a_residual_behind_a_sum_is_no_part_of_it() -> None:
    graph = exchanged("reduce_scatter", 3, has_residual=True)
    own = {name for part in only(graph).ops for name in names(graph, part)}
    assert not any(name.startswith("residual") for name in own)


def test_readers_that_join_the_same_parts_share_an_exchange() -> None:
    exchange = only(exchanged("all_gather", 3, readers=2))
    assert [len(own) for own in exchange.results] == [2, 2, 2]


# Ops that read an intermediate result keep it.
def test_a_sum_that_another_op_reads_is_not_fused() -> None:
    graph = exchanged("all_reduce", 3, has_residual=True)
    assert Counter(e.kind for e in exchanges(graph)) == {"reduce_scatter": 1, "all_gather": 1}


# Without all parts on both sides there is no collective.
@pytest.mark.parametrize("kind", ["all_gather", "reduce_scatter", "all_to_all"])
def test_exchanges_of_some_parts_are_left_out(kind: str) -> None:
    assert not exchanges(exchanged(kind, 3, receivers=2))


def test_whole_ops_exchange_nothing() -> None:
    assert not exchanges(exchanged("all_gather", 3, is_whole=True))
