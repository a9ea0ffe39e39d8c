"""A study whose workers are killed again and again, beside one that nobody disturbs."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import situate
from benchmarks.lib.killed_workers import Sleeping, killing
from benchmarks.lib.record import Row, Target, record
from situate.evaluators.simulated import SimulatedMachine
from situate.solvers.learned.learner import Learning

NOISE = 0.1


def main(arguments: list[str] | None = None) -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="of the study")
    parser.add_argument("--every", type=float, default=2.0, help="seconds between two kills")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--samples", type=int, default=600)
    options = parser.parse_args(arguments)
    row = _row(options)
    same = row["same"]
    target = Target("as a study that nobody disturbs", "yes", same, same == "yes")
    record("worker_faults", {"studies": [row]}, [target], options=options)


def _row(options: argparse.Namespace) -> Row:
    problem = situate.Problem(situate.zoo.load("resnet50"), situate.Cluster.preset("k80-2"))
    with tempfile.TemporaryDirectory() as folder:
        begun, study = Path(folder, "begun"), Path(folder, "study")
        begun.mkdir()
        seconds = options.seconds * options.workers / options.samples
        alone = SimulatedMachine(problem, NOISE, 0)
        slow = Sleeping(problem, NOISE, 0, begun, seconds)
        whole = _learn(problem, options.samples, evaluator=alone)
        with killing(begun, options.every) as killed:
            disturbed = _learn(
                problem, options.samples, evaluator=slow, workers=options.workers, study=study
            )
        count = len(situate.Study.read(study))
    same = np.array_equal(whole.samples, disturbed.samples)
    same &= np.array_equal(whole.placement, disturbed.placement)
    return {
        "workers": options.workers,
        "samples": count,
        "killed": len(killed),
        "seconds": disturbed.seconds,
        "same": "yes" if same and count == options.samples else "no",
    }


def _learn(problem: situate.Problem, samples: int, **learning: object) -> situate.Result:
    options = Learning(**learning)  # type: ignore[arg-type]
    return situate.solve(problem, "post", evaluations=samples, learning=options)


if __name__ == "__main__":
    main()
