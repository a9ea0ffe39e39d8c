"""Hashes of plans, by which a change shows that it leaves every plan as it was.

    python -m benchmarks.search.plan_hashes                     # before the change
    python -m benchmarks.search.plan_hashes --against OLD.json  # after it: the plans that differ

`auto` on the packaged networks and four preset clusters, every other method once, and one small
file of every format that is read.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import msgspec

import situate
from benchmarks.lib.record import Row, Target, read_record, record
from situate.solvers import LEARNERS

NETWORKS = (
    "cifar_cnn",
    "inception_v3",
    "inception_v3:inference",
    "resnet50",
    "resnet50:inference",
    "resnet101",
    "resnet200",
    "rnnlm",
    "nmt2",
    "nmt4",
    "nmt8",
    "bert",
    "gpt2",
    "vit",
    "llama_7b",
)
CLUSTERS = ("k80-4", "unequal-24-12", "a100-pcie-4", "h100-2x8")
EVALUATIONS = 2000
SAMPLES = 120
"""Evaluations of a method that learns."""

METHOD_CASE = ("cifar_cnn", "k80-4")
"""The network and the cluster that every method but `auto` plans once."""

WITHOUT_SECONDS = ("situate", "onnx", "execution-trace")
"""Formats whose samples hold FLOPs and bytes, so that devices must have speeds."""

VARYING = ("seconds", "made_by", "optimizer")
"""Fields of a plan that say how long it took, which version made it, and how the graph's parameters
are updated: its ops, which are hashed, say so too, and plans of versions without that field still
compare."""


def main(arguments: list[str] | None = None) -> None:
    """Plan, hash, compare and record."""
    options = _parser().parse_args(arguments)
    rows = list(_rows())
    targets = [_unchanged(rows, options.against)] if options.against else []
    record("plan_hashes", {"plans": rows}, targets, options=options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, metavar="FILE", help="the record of another commit")
    return parser


def _rows() -> Iterator[Row]:
    for network in NETWORKS:
        graph = situate.find_model(network)
        for cluster in CLUSTERS:
            yield _row(f"auto {network} {cluster}", graph, cluster, "auto", EVALUATIONS)
    graph, cluster = situate.find_model(METHOD_CASE[0]), METHOD_CASE[1]
    for method in situate.METHODS:
        if method != "auto":
            budget = SAMPLES if method in LEARNERS else EVALUATIONS
            yield _row(f"{method} {METHOD_CASE[0]} {cluster}", graph, cluster, method, budget)
    for name, graph in _files():
        yield _row(
            f"auto {name} file", graph, cluster * (name in WITHOUT_SECONDS), "auto", EVALUATIONS
        )


def _files() -> Iterator[tuple[str, situate.Graph]]:
    """A small graph of every format, by the format's name."""
    from tests.readers.samples import SAMPLES

    for name, content in SAMPLES.items():
        if name == "onnx" and find_spec("onnx") is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "sample"
            path.write_bytes(content)
            yield name, situate.read(path)


def _row(name: str, graph: situate.Graph, cluster: str, method: str, evaluations: int) -> Row:
    """The hash of one plan, or the error in its place."""
    devices = situate.Cluster.preset(cluster) if cluster else situate.Cluster.identical(2)
    try:
        problem = situate.Problem(graph, devices)
        result = situate.solve(problem, method, evaluations=evaluations)
        digest = _digest(result.plan)
    except situate.SituateError as error:
        digest = f"error: {error}"
    print(f"{name}: {digest}", flush=True)
    return {"plan": name, "hash": digest}


def _digest(plan: situate.Plan) -> str:
    fields = msgspec.to_builtins(plan, enc_hook=lambda number: number.item())
    compared = {field: value for field, value in fields.items() if field not in VARYING}
    return hashlib.sha256(json.dumps(compared).encode()).hexdigest()[:16]


def _unchanged(rows: list[Row], against: Path) -> Target:
    """Every plan has the hash that it has in another record."""
    before = {row["plan"]: row["hash"] for row in _plans(against)}
    differ = [row["plan"] for row in rows if before.get(row["plan"]) != row["hash"]]
    missing = before.keys() - {row["plan"] for row in rows}
    what = f"plans as at {read_record(against)['commit'][:7]}"
    differ += sorted(missing)
    return Target(what, f"all {len(before)}", f"differ: {', '.join(differ) or 'none'}", not differ)


def _plans(path: Path) -> list[Row]:
    rows: list[Row] = read_record(path)["tables"]["plans"]
    return rows


if __name__ == "__main__":
    main()
