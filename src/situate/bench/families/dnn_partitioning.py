"""Graphs of BERT and ResNet-50 with measured costs (J. Tarnawski et al., NeurIPS 2020).

The folder is that of the authors' repository: `throughput-inputs/` and `latency-inputs/`.
"""

from __future__ import annotations

from pathlib import Path

from situate.bench.instances import Instance, ReferenceValue
from situate.data.problem import Objective, Problem
from situate.readers import read

PAPER = "Tarnawski et al., NeurIPS 2020"

THROUGHPUT = {
    "LayerGraphs/bert24_inference": 17.7899,
    "LayerGraphs/bert24_training": 41.7458,
    "LayerGraphs/resnet50_inference": 33.7747,
    "LayerGraphs/resnet50_training": 78.6318,
    "OperatorGraphs/bert_l-3_inference": 27.9186,
    "OperatorGraphs/bert_l-3_training": 65.3031,
    "OperatorGraphs/resnet50_inference": 124.349,
    "OperatorGraphs/resnet50_training": 255.194,
}
"""Milliseconds, the optimum of contiguous splits: others may take less."""

LATENCY = {
    "LayerGraphs/bert24_inference": 100.2185,
    "LayerGraphs/resnet50_inference": 4197.06,
    "OperatorGraphs/bert_l-3_inference": 409.503,
    "OperatorGraphs/resnet50_inference": 839.536,
}
"""Milliseconds, the best of the authors' greedy and integer program."""

PROVED_LATENCY = {
    "LayerGraphs/bert24_inference": 100.2185,
    "OperatorGraphs/bert_l-3_inference": 369.273,
}
"""Milliseconds, the integer program's bound."""


def throughput(folder: Path) -> list[Instance]:
    """The time between steps."""
    inputs, source = folder / "throughput-inputs", f"{PAPER}, the best contiguous split"
    return [
        _instance("dnn_throughput", inputs, name, "throughput", ReferenceValue(ms / 1e3, source))
        for name, ms in THROUGHPUT.items()
    ]


def latency(folder: Path) -> list[Instance]:
    """The time of a step in which a device runs its ops as one call."""
    inputs, source = folder / "latency-inputs", f"{PAPER}, greedy or integer program"
    bounds = {name: ms / 1e3 for name, ms in PROVED_LATENCY.items()}
    return [
        _instance(
            "dnn_latency", inputs, name, "time", ReferenceValue(ms / 1e3, source, bounds.get(name))
        )
        for name, ms in LATENCY.items()
    ]


def _instance(
    family: str, folder: Path, name: str, objective: Objective, reference: ReferenceValue
) -> Instance:
    path = folder / f"{name}.json"
    return Instance(family, name, lambda: Problem(read(path), objective=objective), reference)
