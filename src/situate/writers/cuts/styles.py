"""The style of each module of a plan of parts, as `torch.distributed.tensor.parallel` has them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from situate.data.cuts import CutParameter
from situate.data.graph import Graph
from situate.errors import PlanError
from situate.report.text import printable
from situate.writers.cuts.teams import ACTIVATIONS, RUNS, parameter_name
from situate.writers.layers import runs_forward

LINEAR = "torch.nn.modules.linear.Linear"
"""The class of a product whose weight is (outputs, inputs)."""

EMBEDDING = "torch.nn.modules.sparse.Embedding"
"""The class of a table whose weight is (rows, columns)."""

CONV1D = "transformers.pytorch_utils.Conv1D"
"""The class of a product whose weight is (inputs, outputs)."""

Kind = Literal["colwise", "rowwise", "embedding", "sequence"]


@dataclass(frozen=True)
class Style:
    """The style of a module.

    Attributes:
        kind: `colwise` and `rowwise` for a product, `embedding` for a table cut by rows, `sequence`
            for a module whose activations are cut and whose parameters are whole.
        stays_cut: true if the next op reads parts of the output.
        ranges: of the outputs of a fused product, each of which is cut alike.
        is_transposed: true if the weight of a product is (inputs, outputs).
    """

    kind: Kind
    stays_cut: bool = True
    ranges: int = 1
    is_transposed: bool = False


@dataclass(frozen=True)
class Styles:
    """The styles of a plan.

    Attributes:
        modules: by path.
        stream: the dimension of activations that is cut between modules; None for none.
        has_parallel_loss: true if the classes of the cross entropy are cut.
    """

    modules: dict[str, Style]
    stream: int | None
    has_parallel_loss: bool


def styles(graph: Graph) -> Styles:
    """The styles of the modules that a plan cuts.

    Raises:
        PlanError: a module is no product or table, holds several fused weights of which the plan
            cuts the inputs, or gathers its weights before it reads them.
    """
    assert graph.cuts is not None
    modules: dict[str, Style] = {}
    gathered = gathered_parameters(graph)
    for parameter in graph.cut_parameters:
        if parameter.name in gathered and not _is_bias(parameter):
            raise PlanError(
                f"each part of {_text(gathered[parameter.name])} gathers all of "
                f"{_text(parameter.name)} before it reads it, which no style of a module does: "
                f"name {parameter.kind} before the other cuts; {RUNS}"
            )
        for path, style in _reader_styles(parameter):
            modules.setdefault(path, style)
    dims = {"sequence": 1, "batch": 0}
    stream = next((dims[cut.name] for cut in graph.cuts.cuts if cut.name in ACTIVATIONS), None)
    if stream is not None:
        _check_attention(graph)
        wholes = _modules_read_whole(graph)
        for path in _whole_modules(graph):
            modules.setdefault(path, Style("sequence", path not in wholes))
    # Reversed, so that a module's first op counts.
    order = {op.module: j for j, op in reversed(list(enumerate(graph.ops)))}
    in_order = sorted(modules, key=lambda path: order.get(path, len(order)))
    return Styles({path: modules[path] for path in in_order}, stream, _has_parallel_loss(graph))


def _reader_styles(parameter: CutParameter) -> Iterator[tuple[str, Style]]:
    """The styles of the modules that read a parameter.

    Raises:
        PlanError: a module has no such style.
    """
    for path, class_name in parameter.readers:
        if class_name not in (LINEAR, EMBEDDING, CONV1D) or not path:
            noun = class_name.rpartition(".")[2] or "no module"
            raise PlanError(
                f"the plan cuts {_text(path or parameter.name)} ({noun}) along its "
                f"{parameter.kind}, and styles of modules are for nn.Linear, nn.Embedding and "
                f"Conv1D: {RUNS}"
            )
        if _is_bias(parameter):
            continue
        if class_name == EMBEDDING:
            yield path, Style("colwise" if parameter.dim else "embedding")
            continue
        is_transposed = class_name == CONV1D
        kind: Kind = "colwise" if parameter.dim == is_transposed else "rowwise"
        ends = parameter.kind not in ("others",)
        if parameter.ranges > 1 and kind == "rowwise":
            raise PlanError(
                f"{_text(path)} holds {parameter.ranges} weights in one, each of which the plan "
                f"cuts along its {parameter.kind}, and a style of a module cuts them as one: give "
                f"each a module of its own; {RUNS}"
            )
        yield path, Style(kind, ends, parameter.ranges, is_transposed)


def _has_parallel_loss(graph: Graph) -> bool:
    """True if a cross entropy reads parts of the results of a product, cut by classes."""
    is_cut = any("nll_loss" in op.kind and op.part is not None for op in graph.ops)
    heads = (p for p in graph.cut_parameters if p.kind == "vocabulary" and p.dim == 0)
    return is_cut and any(name == LINEAR for p in heads for _, name in p.readers)


def _is_bias(parameter: CutParameter) -> bool:
    """True for a bias, which has the style of its weight: cut with rows, whole with columns."""
    return parameter.name.rpartition(".")[2] == "bias"


def _whole_modules(graph: Graph) -> list[str]:
    """Paths of modules without others inside, with whole parameters, whose ops run in parts."""
    holders: dict[str, bool] = {}
    for op in graph.ops:
        if op.kind == "parameter":
            holders[op.module] = holders.get(op.module, True) and op.part is None
    paths = {op.module for op in graph.ops}
    around = {path[:end] for path in paths for end in _ends(path)}
    in_parts = {op.module for op in graph.ops if op.part is not None and runs_forward(op)}
    return [
        path
        for path, is_whole in holders.items()
        if is_whole and path and path in in_parts and path not in around
    ]


def _modules_read_whole(graph: Graph) -> set[str]:
    """Paths of modules whose results in parts a whole op reads."""
    ops, modules = graph.ops, set()
    for tensor in graph.tensors:
        producer, readers = ops[tensor.producer], [ops[k] for k in tensor.consumers]
        is_whole = any(reader.part is None and runs_forward(reader) for reader in readers)
        if producer.part is not None and runs_forward(producer) and is_whole:
            modules.add(producer.module)
    return modules


def _check_attention(graph: Graph) -> None:
    """
    Raises:
        PlanError: the plan cuts an attention along its queries.
    """
    if any(parameter.kind == "heads" for parameter in graph.cut_parameters):
        return
    assert graph.cuts is not None
    for op in graph.ops:
        along_queries = any(cut.name == "sequence" for cut in graph.cuts.cuts)
        if "attention" in op.kind and op.part is not None and along_queries:
            raise PlanError(
                f"the plan cuts the attention of {_text(op.module)} along its queries, which no "
                f"style of a module does: cut its heads too; {RUNS}"
            )


def _ends(path: str) -> list[int]:
    return [match.start() for match in re.finditer(r"\.", path)]


def gathered_parameters(graph: Graph) -> dict[str, str]:
    """By parameter that is cut, a module that reads more than one part of it in one op."""
    readers: dict[int, list[int]] = defaultdict(list)
    for tensor in graph.tensors:
        readers[tensor.producer] += tensor.consumers
    gathered: dict[str, str] = {}
    for j, op in enumerate(graph.ops):
        if op.kind != "parameter" or op.part is None:
            continue
        pending, visited = [j], {j}
        while pending:
            for k in readers[pending.pop()]:
                reader = graph.ops[k]
                if k in visited or reader.phase == "update":
                    continue
                visited.add(k)
                if reader.part != op.part:
                    gathered.setdefault(parameter_name(op), reader.module)
                # A copy is a slice on its way to others, whose readers count.
                elif reader.kind == "aten.clone":
                    pending.append(k)
    return gathered


def patterns(modules: Mapping[str, Style], paths: Sequence[str]) -> dict[str, Style]:
    """The styles by pattern: `layers.*.up` stands for all layers if they have one style.

    Args:
        paths: of all modules.
    """
    alike: dict[str, set[Style | None]] = defaultdict(set)
    for path in {*paths, *modules}:
        alike[_pattern(path)].add(modules.get(path))
    result: dict[str, Style] = {}
    for path, style in modules.items():
        whole = len(alike[_pattern(path)]) == 1
        result[_pattern(path) if whole else _escaped(path)] = style
    return result


def _pattern(path: str) -> str:
    return ".".join("*" if part.isdecimal() else _escaped(part) for part in path.split("."))


def _escaped(path: str) -> str:
    """A pattern that matches this path alone."""
    return re.sub(r"([*?[])", r"[\1]", path)


def _text(name: str) -> str:
    return repr(printable(name, 60))
