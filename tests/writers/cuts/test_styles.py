"""Styles of modules, and modules that have none."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest

pytest.importorskip("torch")

from situate.data.cuts import parse_cuts
from situate.data.graph import Tensor
from situate.errors import PlanError
from situate.writers.cuts.styles import (
    CONV1D,
    Style,
    gathered_parameters,
    patterns,
    styles,
)
from tests.torch_capture.cuts import networks
from tests.writers.cuts.planned import MEGATRON, captured, index_of, products

COLUMNS, ROWS = Style("colwise"), Style("rowwise")


# Columns and rows alternate, and modules with whole weights follow the sequence.
def test_a_transformer_has_columns_rows_and_norms_on_the_sequence() -> None:
    result = styles(captured("decoder", *MEGATRON))
    assert (result.stream, result.has_parallel_loss) == (1, True)
    layer = {
        "before": Style("sequence"),
        **dict.fromkeys("qkv", COLUMNS),
        "out": ROWS,
        "between": Style("sequence"),
        "up": COLUMNS,
        "down": ROWS,
    }
    assert result.modules == {
        "embedding": Style("embedding"),
        **{f"layers.{i}.{name}": style for i in range(2) for name, style in layer.items()},
        "norm": Style("sequence"),
        "head": COLUMNS,
    }
    assert list(result.modules)[:3] == ["embedding", "layers.0.before", "layers.0.q"]


def test_results_that_a_whole_op_reads_are_gathered() -> None:
    modules = styles(captured("decoder", "features=2", "sequence=2")).modules
    assert modules["layers.0.q"] == Style("sequence", stays_cut=False)
    assert modules["layers.0.before"] == Style("sequence")


def test_the_loss_is_parallel_where_a_product_makes_parts_of_the_classes() -> None:
    result = styles(captured("decoder", "batch=2"))
    assert (result.stream, result.has_parallel_loss) == (0, False)


# A module without a style is named, with the reason.
@pytest.mark.parametrize(
    ("build", "cuts", "message"),
    [
        (
            "convolutions",
            ("channels=2",),
            r"cuts '0' \(Conv2d\) along its channels, and styles of modules are for nn\.Linear, ",
        ),
        ("decoder", ("sequence=2", "features=2"), r"gathers all of 'layers\.0\.up\.weight' before"),
    ],
)
def test_modules_without_a_style_are_refused(build, cuts, message) -> None:
    from situate.torch_capture import capture

    graph = capture(networks.NETWORKS[build], cuts=parse_cuts(cuts))
    with pytest.raises(PlanError, match=f"{message}.*situate run runs it$"):
        styles(graph)


# Fused products have a range for each of their weights.
def test_fused_products_have_ranges_of_columns() -> None:
    from situate.torch_capture import capture

    graph = capture(networks.decoder, cuts=parse_cuts(["heads=2"]))
    modules = styles(graph).modules
    assert modules["layers.0.qkv"] == Style("colwise", ranges=3)
    assert modules["layers.0.out"] == ROWS


def test_products_with_transposed_weights_have_styles() -> None:
    graph = products()
    readers = [
        msgspec.structs.replace(p, dim=1 - p.dim, readers=tuple((m, CONV1D) for m, _ in p.readers))
        for p in graph.cut_parameters
    ]
    modules = styles(dataclasses.replace(graph, cut_parameters=tuple(readers))).modules
    assert modules["layers.0.up"] == Style("colwise", is_transposed=True)
    assert modules["layers.0.down"] == Style("rowwise", is_transposed=True)


def test_fused_inputs_are_refused() -> None:
    graph = products()
    fused = [
        msgspec.structs.replace(p, ranges=2 if p.dim else 1, bounds=(0, 4, 8))
        for p in graph.cut_parameters
    ]
    with pytest.raises(PlanError, match=r"'layers\.0\.down' holds 2 weights in one"):
        styles(dataclasses.replace(graph, cut_parameters=tuple(fused)))


def test_attention_along_its_queries_is_refused() -> None:
    graph = products(cuts="sequence=2")
    parts = [msgspec.structs.replace(op, kind="aten.attention") for op in graph.ops]
    graph = dataclasses.replace(graph, ops=tuple(parts), cut_parameters=())
    with pytest.raises(PlanError, match=r"attention of 'layers\.0\.up' along its queries"):
        styles(graph)


def test_a_part_that_another_part_reads_is_gathered() -> None:
    graph = products()
    assert gathered_parameters(graph) == {}
    source = index_of(graph, "part0/layers.1.up.weight")
    reader = index_of(graph, "sliceNone/part1/layers.1.up/mm")
    tensors = (*graph.tensors, Tensor("more", source, 8, (reader,)))
    again = dataclasses.replace(graph, tensors=tensors)
    assert gathered_parameters(again) == {"layers.1.up.weight": "layers.1.up"}


# Patterns are short, and match no other module.
def test_layers_with_one_style_share_a_pattern() -> None:
    modules = {"layers.0.up": COLUMNS, "layers.1.up": COLUMNS, "head": ROWS}
    assert patterns(modules, list(modules)) == {"layers.*.up": COLUMNS, "head": ROWS}
    assert patterns(modules, [*modules, "layers.2.up"]) == modules
    assert patterns({"a[*]": ROWS}, []) == {"a[[][*]]": ROWS}
