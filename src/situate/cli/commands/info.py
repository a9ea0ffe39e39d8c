"""`situate info`: the contents of a graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from situate.cli.language.options import Quant, is_language
from situate.cli.option_groups import with_options
from situate.cli.options import Json, Model
from situate.cli.step_options import FixedStepOptions
from situate.errors import SituateError

if TYPE_CHECKING:
    from situate.data.graph import Graph


@with_options
def info(
    model: Model, *, step: FixedStepOptions, quant: Quant = None, as_json: Json = False
) -> None:
    """Show the contents of a model: ops, tensors, sizes, groups, and the rules it is scored by; of
    a language model (GGUF, config.json) parameters, bytes by type, experts and cache."""
    from situate.cli.answer import print_json, print_table
    from situate.cli.inputs import read_model
    from situate.report import tables

    if is_language(model):
        _show_language_model(model, quant, as_json)
        return
    if quant is not None:
        raise SituateError(
            f"--quant is for language models, and {model} is none that situate knows"
        )
    graph = read_model(model, step.capture())
    if as_json:
        print_json(_graph_figures(graph))
    else:
        print_table(tables.info(graph))


def _show_language_model(path: str, quant: str | None, as_json: bool) -> None:
    from situate.cli.answer import print_json, print_table
    from situate.cli.terminal import note
    from situate.language import read_language_model
    from situate.report.language_model import language_model_figures, language_model_table

    model = read_language_model(path, quant)
    for warning in model.warnings:
        note(f"warning: {warning}")
    if as_json:
        print_json(language_model_figures(model))
    else:
        print_table(language_model_table(model))


def _graph_figures(graph: Graph) -> dict[str, Any]:
    """Counts and sums over a graph; sizes in bytes, arithmetic in floating-point operations."""
    from situate.report.tables import longest_path

    ops, tensors = graph.ops, graph.tensors
    chain, chain_flops = longest_path(graph)
    return {
        "graph": graph.name,
        "source": graph.source,
        "hash": graph.hash,
        "unit": graph.unit,
        "rules": graph.rules,
        "optimizer": graph.optimizer,
        "slices": graph.slices,
        "recompute": graph.recompute,
        "cuts": graph.cuts,
        "ops": len(ops),
        "tensors": len(tensors),
        "edges": sum(len(t.consumers) for t in tensors),
        "control_edges": len(graph.control),
        "longest_chain": chain,
        "longest_chain_flops": chain_flops,
        "groups": len({op.group for op in ops if op.group is not None}),
        "pinned_ops": sum(op.device is not None for op in ops),
        "ops_with_own_seconds": sum(op.seconds is not None for op in ops),
        "flops": sum(op.flops for op in ops),
        "persistent_bytes": sum(op.persistent for op in ops),
        "tensor_bytes": sum(t.size for t in tensors if not t.resident),
        "largest_tensor_bytes": max((t.size for t in tensors), default=0),
        "largest_workspace_bytes": max(op.workspace for op in ops),
        "phases": dict(Counter(op.phase for op in ops).most_common()),
        "kinds": dict(Counter(op.kind for op in ops).most_common()),
        "phase_flops": _sums((op.phase, op.flops) for op in ops),
        "kind_flops": _sums((op.kind, op.flops) for op in ops),
        "seconds": _sums(entry for op in ops for entry in (op.seconds or {}).items()),
        "machine": graph.machine,
        "warnings": graph.warnings,
    }


def _sums(parts: Iterable[tuple[str, float]]) -> dict[str, float]:
    """The sum of each name's parts, the largest first."""
    sums: dict[str, float] = {}
    for name, part in parts:
        sums[name] = sums.get(name, 0) + part
    return dict(sorted(sums.items(), key=lambda entry: -entry[1]))
