"""torch.distributed.tensor: a Python file that cuts a model by `parallelize_module`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from situate.data.problem import Problem
from situate.errors import PlanError
from situate.files.atomic import write_bytes
from situate.report.text import plural, printable
from situate.schedule.schedule import Schedule
from situate.writers.cuts.styles import Style, Styles, patterns, styles
from situate.writers.cuts.teams import Teams, teams
from situate.writers.layers import layer_paths
from situate.writers.stages import visible

FUNCTIONS = Path(__file__).parent / "cuts" / "dtensor_functions.py"
"""The functions of every file, behind `MARK`. They import PyTorch, so this module reads them as
text."""

PRODUCTS = Path(__file__).parent / "cuts" / "dtensor_products.py"
"""The style of products for which PyTorch has none, behind `PRODUCTS_MARK`."""

MARK, PRODUCTS_MARK = "# Functions.\n", "# Products.\n"

PLACEHOLDERS = "DEVICE_TYPE = "
"""The begin of the constants that a plan replaces."""

USE = """
Run it with as many processes as the mesh has ranks, by torchrun. In each:

    mesh = device_mesh()
    model = parallelize(model, mesh)  # before the optimizer is made
    with step():
        loss = ...  # of the model's results
        loss.backward()
"""


def write(problem: Problem, schedule: Schedule, path: str | Path) -> None:
    """Write a module with `device_mesh`, `parallelize` and `step`.

    Raises:
        PlanError: the plan cuts no op, no mesh can express it, see `teams`, or a module has no
            style, see `styles`.
        SituateError: `path` cannot be written.
    """
    if problem.graph.cuts is None:
        raise PlanError(
            "the plan cuts no op, and dtensor cuts the modules of a plan: plan with --cuts, such "
            "as --cuts heads=2 --cuts features=2"
        )
    module_styles = styles(problem.graph)
    mesh = teams(problem, schedule, "dtensor")
    write_bytes(path, _source(problem, module_styles, mesh).encode())


def _source(problem: Problem, module_styles: Styles, mesh: Teams) -> str:
    text = FUNCTIONS.read_text(encoding="utf-8")
    imports, functions = text.split(MARK)
    imports = imports[imports.index("from __future__") : imports.index(PLACEHOLDERS)]
    if any(map(_is_own, module_styles.modules.values())):
        imports = f"{imports.rstrip()}\n{_products(imports)}"
    title = f'"""A model cut over a mesh of devices, by situate.\n{USE}"""\n\n'
    lines = [*_notes(problem, mesh), *_constants(problem, module_styles, mesh)]
    return f"{title}{imports}" + "\n".join(lines) + "\n\n" + functions.lstrip("\n")


def _products(imports: str) -> str:
    """The style of fused and of transposed products, behind the imports that it needs."""
    own, text = PRODUCTS.read_text(encoding="utf-8").split(PRODUCTS_MARK)
    own = own[own.index("from __future__") :]
    more = [line for line in own.splitlines() if line and line not in imports.splitlines()]
    return "\n".join([*more, "", "", text.strip(), "", "", ""])


def _is_own(style: Style) -> bool:
    """True for a product for which PyTorch has no style."""
    return style.ranges > 1 or style.is_transposed


def _notes(problem: Problem, mesh: Teams) -> Iterator[str]:
    """Comments, the only lines in which names of the user stand outside of strings."""
    graph, names = problem.graph, problem.cluster.names
    yield f"# {printable(f'{graph.name} on {problem.cluster.name}: {graph.cuts}')}"
    ranks = ", ".join(f"{i} {printable(names[d], 40)}" for i, d in enumerate(mesh.ranks))
    yield f"# ranks: {ranks}"
    if problem.cluster.devices[mesh.ranks[0]].kind != "cpu":
        for name, value in visible(problem.cluster, mesh.ranks).items():
            yield f"# set {name}={value}, which numbers the ranks so"
    if mesh.slices:
        note = f"# each team takes {plural(mesh.slices, 'slice')} of {mesh.samples} samples"
        yield f"{note}: divide the loss of each by {mesh.slices}" if mesh.slices > 1 else note


def _constants(problem: Problem, module_styles: Styles, mesh: Teams) -> Iterator[str]:
    graph = problem.graph
    kind = problem.cluster.devices[mesh.ranks[0]].kind
    yield f"DEVICE_TYPE = {'cpu' if kind == 'cpu' else 'cuda'!r}"
    yield f"MESH = {_mesh(mesh)!r}"
    yield "PLAN: dict[str, ParallelStyle] = {"
    paths = sorted({op.module for op in graph.ops if op.module})
    for pattern, style in patterns(module_styles.modules, paths).items():
        yield f"    {pattern!a}: {_call(style, module_styles.stream)},"
    yield "}"
    yield f"BLOCKS: tuple[str, ...] = {tuple(layer_paths(graph))!a}"
    yield f"HAS_ATTENTION = {any('scaled_dot_product' in op.kind for op in graph.ops)}"
    yield f"HAS_PARALLEL_LOSS = {module_styles.has_parallel_loss}"
    slices = graph.slices
    yield f"LOSS_IS_SUM = {slices is not None and slices.loss == 'sum'}"


def _mesh(mesh: Teams) -> dict[str, int]:
    """The sizes of the mesh by name."""
    count = len(mesh.devices)
    if count == 1:
        return {"tp": mesh.parts}
    if mesh.is_sharded:
        return {"dp_shard": count, "tp": mesh.parts}
    return {"dp_replicate": count, "dp_shard": 1, "tp": mesh.parts}


def _call(style: Style, stream: int | None) -> str:
    """The style as a call.

    Args:
        stream: the dimension of activations that is cut between modules.
    """
    between = "Replicate()" if stream is None else f"Shard({stream})"
    if style.kind == "sequence":
        if style.stays_cut:
            return f"SequenceParallel(sequence_dim={stream})"
        layouts = f"output_layouts={between}, desired_output_layouts=Replicate()"
        return f"PrepareModuleOutput({layouts}, use_local_output=False)"
    if _is_own(style):
        return (
            f"ProductParallel(columns={style.kind == 'colwise'}, between={between}, "
            f"stays_cut={style.stays_cut}, ranges={style.ranges}, transposed={style.is_transposed})"
        )
    if style.kind == "colwise":
        output = "Shard(-1)" if style.stays_cut else between
        layouts = f"input_layouts={between}, output_layouts={output}"
        return f"ColwiseParallel({layouts}, use_local_output=False)"
    layouts = f"input_layouts=Replicate(), output_layouts={between}"
    return f"RowwiseParallel({layouts}, use_local_output=False)"
