"""Tensors of a graph, and their order."""

from __future__ import annotations

from situate.language.activations.tensors import F16, Graph, Tensor, entry, part, stored, view


def test_a_graph_has_every_tensor_once_behind_all_that_it_reads() -> None:
    a, b = entry((8,)), stored((8, 8), 64, 0, weight=True)
    product = Tensor((8,), (b, a))
    total = Tensor((8,), (product, a))
    graph = Graph()
    graph.expand(total)
    graph.expand(product)
    assert graph.leaves == [b, a]
    assert graph.nodes == [product, total]


# Memory of views.
def test_a_view_shares_the_memory_of_the_first_tensor() -> None:
    tensor = Tensor((8, 4), (entry((8, 4)),))
    second = view(view(tensor, (4, 8)), (2, 16))
    assert second.root is tensor
    assert second.size == tensor.size == 4 * 32


def test_a_part_ends_with_the_part_of_the_last_row() -> None:
    tensor = Tensor((10, 4), (entry((10, 4)),))
    assert part(tensor, (3, 4)).size == 4 * (10 * 3 + 3)


# An op in place needs the same elements in the same places.
def test_tensors_are_alike_with_equal_shapes_elements_and_rows() -> None:
    tensor = Tensor((8, 4), (entry((8,)),))
    assert tensor.like(Tensor((8, 4, 1), (tensor,)))
    assert not tensor.like(Tensor((4, 8), (tensor,)))
    assert not tensor.like(Tensor((16, 4), (tensor,), F16))
    assert not tensor.like(view(tensor, (8, 4), contiguous=False))


def test_the_batch_of_an_op_is_its_rows_where_nothing_else_is_said() -> None:
    assert Tensor((8, 4, 3)).offload_batch() == 12
    assert Tensor((8, 4, 3), batch=3).offload_batch() == 3
