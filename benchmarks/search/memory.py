"""`auto` where memory is the objective: its distance from the bound, beside the graph's order,
those among which PyTorch's compiler chooses, and contiguous stages."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

import numpy as np

import situate
from benchmarks.lib.inductor_orders import ORDERS, Buffers
from benchmarks.lib.record import Row, Target, record
from situate.bench.families.unequal import layered
from situate.bounds.memory import least_peak
from situate.data.arrays import Order
from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph
from situate.simulation.decoding import decode

NETWORKS = (
    "cifar_cnn",
    "resnet50",
    "resnet101",
    "resnet200",
    "inception_v3",
    "rnnlm",
    "nmt2",
    "nmt4",
    "nmt8",
    "gpt2",
    "bert",
    "vit",
    "llama_7b",
    "llama_70b",
    "moe",
)
SPREAD = ("resnet50", "inception_v3", "rnnlm", "nmt2", "gpt2", "bert", "vit", "llama_7b")
"""Networks that are spread over several devices."""

PHASES = ("", ":inference")
PARTS = 2 / 3, 1 / 3
ROOM = 1.3
"""Bytes of two unequal devices, as parts of so many times what one device needs."""

LARGE = (20_000, 80_000)
LARGE_DEVICES = 4
STAGES = ("pipeline", "topological", "heft")
SMALL_GAP, LARGEST_GAP, CLOSE_NETWORKS = 0.01, 0.10, 12


def main(arguments: list[str] | None = None) -> None:
    """Plan, print and record."""
    options = _parser().parse_args(arguments)
    one = [_one_device(network, options) for network in options.networks]
    phases = {f"one device, {name}": rows for name, rows in _by_phase(one)}
    several = [row for network in options.spread for row in _several_devices(network, options)]
    large = [row for ops in options.large for row in _large(ops, options)]
    tables = phases | {"several devices": several, "generated graphs": large}
    rows = [row for both in one for row in both]
    targets = [_close(rows), _far(rows), _not_above(rows), _not_above_methods(several)]
    record("memory", tables, targets, options=options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", nargs="*", default=list(NETWORKS), help="on one device")
    parser.add_argument("--spread", nargs="*", default=list(SPREAD), help="on several devices")
    parser.add_argument("--large", nargs="*", type=int, default=list(LARGE), metavar="OPS")
    parser.add_argument("--time-limit", type=float, default=10.0)
    parser.add_argument("--several-limit", type=float, default=5.0, help="on several devices")
    parser.add_argument("--seed", type=int, default=0)
    return parser


def _by_phase(one: list[list[Row]]) -> Iterator[tuple[str, list[Row]]]:
    yield "training", [rows[0] for rows in one]
    yield "inference", [rows[1] for rows in one]


def _one_device(network: str, options: argparse.Namespace) -> list[Row]:
    """Rows of a training step and of inference."""
    graphs = [situate.zoo.load(network + phase) for phase in PHASES]
    return [_with_peers(graph, options.time_limit, options.seed) for graph in graphs]


def _with_peers(graph: Graph, time_limit: float, seed: int) -> Row:
    problem = situate.Problem(graph, _devices(None), "memory")
    result = situate.solve(problem, time_limit=time_limit, seed=seed)
    buffers = Buffers(problem)
    peers = {"graph_order": _peak(problem, np.array(graph.order, np.int32))}
    peers |= {name: _peak(problem, order(buffers)) for name, order in ORDERS.items()}
    return {**_row(result), **{name: peak / result.value for name, peak in peers.items()}}


def _devices(*memory: int | None) -> Cluster:
    """Equal GPUs but for so many bytes each."""
    gpus = [
        Device(f"gpu{i}", memory=size, flops={"float32": 60e12}, bandwidth=3e12, launch=5e-6)
        for i, size in enumerate(memory)
    ]
    links = (Link("*", "*", bandwidth=300e9, latency=5e-6),) if len(gpus) > 1 else ()
    return Cluster("GPUs", tuple(gpus), links)


def _peak(problem: situate.Problem, order: Order) -> int:
    """Largest bytes in use on the first device in an order."""
    return int(decode(problem, np.zeros(problem.n, np.int32), order, "serial").peak[0])


def _row(result: situate.Result) -> Row:
    return {
        "graph": result.problem.graph.name,
        "ops": result.problem.n,
        "gigabytes": result.value / 1e9,
        "gap": result.gap,
        "bounded_by": result.bounded_by,
        "evaluations": result.evaluations,
        "seconds": result.seconds,
    }


def _several_devices(network: str, options: argparse.Namespace) -> Iterator[Row]:
    """Rows of a training step on two and four equal devices, and on two unequal ones."""
    graph = situate.zoo.load(network)
    needed = ROOM * least_peak(situate.Problem(graph, _devices(None), "memory"))
    unequal = [round(part * needed) for part in PARTS]
    for name, memory in (("2", (None,) * 2), ("4", (None,) * 4), ("unequal", unequal)):
        print(f"{graph.name} on {name} devices", flush=True)
        yield {"devices": name, **_with_methods(graph, memory, options)}


def _with_methods(graph: Graph, memory: Sequence[int | None], options: argparse.Namespace) -> Row:
    problem = situate.Problem(graph, _devices(*memory), "memory")
    result = situate.solve(problem, time_limit=options.several_limit, seed=options.seed)
    peers = {name: situate.solve(problem, name, time_limit=options.time_limit) for name in STAGES}
    over = {name: p.value / result.value if p.feasible else None for name, p in peers.items()}
    return {**_row(result), **over}


def _large(ops: int, options: argparse.Namespace) -> Iterator[Row]:
    """Rows of a generated graph on one device, with the compiler's orders, and on several."""
    graph = layered(ops, options.seed)
    one = _with_peers(graph, options.time_limit, options.seed)
    yield {"devices": 1, **one}
    problem = situate.Problem(graph, _devices(*[None] * LARGE_DEVICES), "memory")
    result = situate.solve(problem, time_limit=options.time_limit, seed=options.seed)
    none = dict.fromkeys(("graph_order", *ORDERS))
    yield {"devices": LARGE_DEVICES, **_row(result), **none}


def _close(rows: list[Row]) -> Target:
    """Counts networks of which both phases are close."""
    both = [max(pair["gap"] for pair in rows[i : i + 2]) for i in range(0, len(rows), 2)]
    close = sum(gap <= SMALL_GAP for gap in both)
    wanted = f"within 1 % of the bound on {CLOSE_NETWORKS} of {len(NETWORKS)} networks"
    return Target("one device", wanted, f"{close} of {len(both)}", close >= CLOSE_NETWORKS)


def _far(rows: list[Row]) -> Target:
    gap = max((row["gap"] for row in rows), default=0.0)
    return Target("one device", "within 10 % on all", f"{gap:.2%}", gap <= LARGEST_GAP)


def _not_above(rows: list[Row]) -> Target:
    """A peer's column is its peak over auto's."""
    above = [row["graph"] for row in rows if min(row[p] for p in ("graph_order", *ORDERS)) < 1]
    measured = ", ".join(above) or f"0 of {len(rows)}"
    return Target(
        "one device", "never above the graph's order or the compiler's", measured, not above
    )


def _not_above_methods(rows: list[Row]) -> Target:
    above = [f"{row['graph']} on {row['devices']}" for row in rows if _is_above(row)]
    measured = ", ".join(above) or f"0 of {len(rows)}"
    return Target("several devices", "never above stages or list rules", measured, not above)


def _is_above(row: Row) -> bool:
    return any(row[name] is not None and row[name] < 1 for name in STAGES)


if __name__ == "__main__":
    main()
