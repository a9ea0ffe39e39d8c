"""Three training steps placed at random on two and three CPU devices, against the same steps
unplaced: the losses, and every parameter and buffer afterwards, to the last bit.

With `--slices 2 4` the batch is cut, and the unplaced steps add up the gradients of slices in the
same order. One thread a device. Written after every placement; at the same clean commit it goes on.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import torch

from benchmarks.lib import placements
from benchmarks.lib.record import RESULTS, Row, Target, rows_at_commit, show, write
from benchmarks.runtime.runtime_cases import Case, cpus
from situate.data.problem import Problem
from situate.evaluators.hardware.workers import HardwareWorkers
from situate.runtime.equality import difference
from situate.runtime.programs.seeds import seeded_draws
from situate.runtime.step import StartDevices

CASES = (
    Case("cifar_cnn", (16,)),
    Case("resnet50", (2,)),
    Case("inception_v3", (2,)),
    Case("rnnlm", (4,)),
    Case("nmt2", (4, 6)),
    Case("gpt2", (1, 32)),
    Case("moe", (1, 32)),
)
CASES_TO_CUT = (
    Case("cifar_cnn", (16,)),
    Case("resnet50", (4,)),
    Case("inception_v3", (8,)),
    Case("rnnlm", (4,)),
    Case("nmt2", (4, 6)),
    Case("gpt2", (4, 16)),
    Case("moe", (4, 16)),
)
"""The same with samples enough for four slices, of which batch norm needs two where its images are
single pixels."""

STEPS = 3
LIMIT = 600.0
"""Seconds for the steps of a placement; the devices' processes serve one after the other."""
TABLE = "random placements"


@dataclass(frozen=True)
class Numbers:
    """The numbers that steps leave behind."""

    losses: list[float]
    state: Mapping[str, torch.Tensor]


def main(arguments: list[str] | None = None) -> None:
    """Run, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [case.name for case in CASES]
    parser.add_argument("--networks", nargs="+", choices=names, default=names)
    parser.add_argument("--devices", nargs="+", type=int, default=[2, 3])
    parser.add_argument("--placements", type=int, default=20, help="of each network and number")
    parser.add_argument("--slices", nargs="+", type=int, default=[1], help="1 for a whole batch")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    name = "same_numbers" if options.slices == [1] else "same_numbers_slices"
    path = RESULTS / f"{name}.json"
    rows = _wanted(rows_at_commit(path, TABLE), options)
    for case in _cases(options):
        for row in _missing(case, rows, options):
            rows.append(row)
            write(path, {TABLE: rows}, options=options)
            print(_line(row), flush=True)
    targets = list(_targets(rows))
    write(path, {TABLE: rows}, targets, options=options)
    show(f"{name}: targets", [asdict(target) for target in targets])


def _cases(options: argparse.Namespace) -> Iterator[Case]:
    for count in options.slices:
        for case in CASES if count == 1 else CASES_TO_CUT:
            if case.name in options.networks:
                yield replace(case, slices=count)


def _wanted(rows: Sequence[Row], options: argparse.Namespace) -> list[Row]:
    return [
        row
        for row in rows
        if row["network"] in options.networks
        and row["devices"] in options.devices
        and row["slices"] in options.slices
        and options.seed <= row["seed"] < options.seed + options.placements
    ]


def _missing(case: Case, rows: list[Row], options: argparse.Namespace) -> Iterator[Row]:
    """The rows of a network that are not there yet; it is captured if there are any."""
    there = {(row["devices"], row["seed"]) for row in rows if _of(row) == (case.name, case.slices)}
    seeds = range(options.seed, options.seed + options.placements)
    missing = {d: [s for s in seeds if (d, s) not in there] for d in options.devices}
    if not any(missing.values()):
        return
    wanted = _unplaced(case)
    for devices, absent in missing.items():
        problem = case.problem(cpus(devices))
        processes = HardwareWorkers(LIMIT)
        try:
            for seed in absent:
                yield _row(case, problem, seed, wanted, processes.start)
                processes.finish()
        finally:
            processes.close()


def _unplaced(case: Case) -> Numbers:
    model = case.copied()
    step, losses = case.step_of(model), []
    for number in range(1, STEPS + 1):
        with seeded_draws(0, number):
            losses.append(step().item())
    return Numbers(losses, model.state_dict())


def _row(case: Case, problem: Problem, seed: int, wanted: Numbers, start: StartDevices) -> Row:
    schedule = placements.by_unit(problem, np.random.default_rng(seed))
    with case.placed(schedule, problem.cluster, start=start) as step:
        losses = [step(*case.inputs).item() for _ in range(STEPS)]
        result = step.model.state_dict()
        different = [
            name for name, tensor in wanted.state.items() if not torch.equal(tensor, result[name])
        ]
    return {
        "network": case.name,
        "slices": case.slices,
        "devices": problem.d,
        "seed": seed,
        "devices_used": len(np.unique(schedule.placement)),
        "transfers": len(schedule.tensor),
        "equal_losses": losses == wanted.losses,
        "tensors": len(wanted.state),
        "different_tensors": len(different),
        "largest_difference": max(
            (difference(wanted.state[name], result[name]) for name in different), default=0.0
        ),
    }


def _line(row: Row) -> str:
    same = row["equal_losses"] and not row["different_tensors"]
    where = f"{_called(row)} on {row['devices']} devices, placement {row['seed']}"
    return f"{where}: {'equal' if same else 'DIFFERENT'}"


def _of(row: Row) -> tuple[str, int]:
    return row["network"], row["slices"]


def _called(row: Row) -> str:
    return row["network"] if row["slices"] == 1 else f"{row['network']} in {row['slices']} slices"


def _targets(rows: list[Row]) -> Iterator[Target]:
    for of in dict.fromkeys(map(_of, rows)):
        mine = [row for row in rows if _of(row) == of]
        same = sum(row["equal_losses"] and not row["different_tensors"] for row in mine)
        yield Target(
            f"{_called(mine[0])}: loss and every tensor after {STEPS} steps",
            "equal to the unplaced step, to the last bit",
            f"{same} of {len(mine)} placements",
            same == len(mine),
        )


if __name__ == "__main__":
    main()
