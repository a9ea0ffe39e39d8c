"""A set of graphs an order of magnitude larger than those that train a policy, as XLA's in REGAL
(5.3): training steps of the zoo of 2,500 to 20,500 ops, and copies of each with noise on times and
sizes (A.1.2).

Ops are timed as those of `research.regal.real` are. Steps of whose topology a graph is in the
folder of `--trained` are left out: a policy that learnt from them would not be tried on others.

    python -m research.regal.larger LARGER --trained SET/time/train
    python -m research.regal.evaluation LARGER --name larger_time --limits \\
        --weights tuned=trained/weights.safetensors
"""

from __future__ import annotations

import argparse
from pathlib import Path

from research.regal.real import in_degrees, timed
from situate import zoo
from situate.data import graph_json
from situate.readers import read
from situate.solvers.evolutionary.regal.proposals import derived
from situate.solvers.evolutionary.regal.training.data_set import copied

NETWORKS = ("resnet200", "rnnlm", "llama_7b", "llama_70b", "moe", "nmt2")


def main(arguments: list[str] | None = None) -> None:
    """Write the files that are not there yet."""
    options = _options(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    trained = {in_degrees(read(path)) for path in _files(options.trained)}
    for name in options.networks:
        graph = timed(zoo.load(name))
        if in_degrees(graph) in trained:
            print(f"{name}: left out, a graph of its topology is in {options.trained}")
            continue
        for copy in range(options.copies + 1):
            path = options.folder / f"{name}.{copy}.json.gz"
            if not path.exists():
                larger = copied(graph, derived(options.seed, copy)) if copy else graph
                graph_json.write(larger, path)
        print(f"{name}: {len(graph.ops):,} ops, {options.copies} copies", flush=True)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS), metavar="NAME")
    parser.add_argument("--copies", type=int, default=3, help="of each, with noise; default: 3")
    parser.add_argument("--trained", type=Path, help="a folder of graphs that trained the policy")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(arguments)


def _files(folder: Path | None) -> list[Path]:
    return [] if folder is None else sorted(path for path in folder.iterdir() if path.is_file())


if __name__ == "__main__":
    main()
