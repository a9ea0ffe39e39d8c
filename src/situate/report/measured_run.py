"""A run of a plan: measurements beside predictions, and the check that it computes right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from situate.data.problem import Problem
from situate.data.problem_arrays import UNLIMITED
from situate.report.computing_time import computing_time
from situate.report.tables import name_cell, table
from situate.report.text import plural, printable
from situate.report.units import share_text, size_text, time_text
from situate.results.expected import expected_schedule, expected_seconds
from situate.runtime.equality import Equality
from situate.runtime.measure import StepTimes
from situate.schedule.schedule import Schedule

COLUMNS = "device|busy|predicted|share|predicted|waiting|predicted|peak memory|predicted|limit"


@dataclass(frozen=True)
class DeviceRun:
    """One device in a step: seconds, and bytes.

    Attributes:
        busy, waited: measured, of its own steps; 0 for an unused device.
        predicted_busy: seconds in which it computes.
        peak: measured; None if not measured.
        limit: None is unlimited.
    """

    name: str
    busy: float
    waited: float
    predicted_busy: float
    predicted_waited: float
    peak: int | None
    predicted_peak: int
    limit: int | None


@dataclass(frozen=True)
class MeasuredRun:
    """The measured and the predicted time of a step, in seconds.

    Attributes:
        first: the warm-up step, which does not count.
        predicted, planned: with and without the slowdown that busy devices cause one another.
        pace: measured over predicted busy time of all devices together.
        seconds: of the steps in the mean.
        loss: of the first and the last step; None for inference.
    """

    graph: str
    cluster: str
    first: float
    seconds: tuple[float, ...]
    mean: float
    median: float
    deviation: float
    predicted: float
    planned: float
    pace: float
    loss: tuple[float, float] | None
    devices: tuple[DeviceRun, ...]

    @property
    def error(self) -> float:
        """The error of the prediction as a fraction of the mean; negative where it is too short."""
        return self.predicted / self.mean - 1

    @property
    def error_at_pace(self) -> float:
        """The error of the prediction at the measured pace.

        The error that remains is that of the order, of transfers and of waiting.
        """
        return self.pace * self.predicted / self.mean - 1


def measured_run(
    problem: Problem,
    schedule: Schedule,
    measurement: StepTimes,
    used: Sequence[int],
    peaks: Sequence[int] | None = None,
    expected: Sequence[int] | None = None,
) -> MeasuredRun:
    """A measured run of a plan beside its prediction.

    Args:
        measurement: of the devices in `used`.
        used: device indices.
        peaks: measured bytes by device in `used`.
        expected: predicted bytes by device; by default those of the schedule.
    """
    if expected is None:
        expected = schedule.peak.tolist()
    place = {device: k for k, device in enumerate(used)}
    computing = computing_time(problem, schedule)

    def device_run(d: int) -> DeviceRun:
        k, capacity, busy = place.get(d), int(problem.capacity[d]), float(computing[d])
        return DeviceRun(
            name=problem.cluster.names[d],
            busy=0.0 if k is None else measurement.busy[k],
            waited=0.0 if k is None else measurement.waited[k],
            predicted_busy=busy,
            predicted_waited=max(schedule.makespan - busy, 0.0) if k is not None else 0.0,
            peak=None if k is None or peaks is None else peaks[k],
            predicted_peak=expected[d],
            limit=capacity if capacity < UNLIMITED else None,
        )

    return MeasuredRun(
        graph=problem.graph.name,
        cluster=problem.cluster.name,
        first=measurement.first,
        seconds=measurement.seconds,
        mean=measurement.mean,
        median=measurement.median,
        deviation=measurement.deviation,
        predicted=expected_seconds(problem, schedule),
        planned=schedule.makespan,
        pace=_pace(expected_schedule(problem, schedule), measurement),
        loss=(measurement.losses[0], measurement.losses[-1]) if measurement.losses else None,
        devices=tuple(map(device_run, range(problem.d))),
    )


def _pace(expected: Schedule, measurement: StepTimes) -> float:
    predicted = float((expected.end - expected.start).sum())
    return sum(measurement.busy) / predicted if predicted else 1.0


def run_table(run: MeasuredRun) -> RenderableType:
    """The step's time, its spread and the prediction's error; each device's time and memory."""
    spread = f"{time_text(min(run.seconds))} to {time_text(max(run.seconds))}"
    rows = [
        ("measured", f"{time_text(run.mean)}, the mean of {plural(len(run.seconds), 'step')}"),
        ("spread", f"{spread}, median {time_text(run.median)}, "
                   f"standard deviation {time_text(run.deviation)}"),
        ("predicted", f"{time_text(run.predicted)}, {_error(run.error)}"),
        ("pace", f"ops took {run.pace:.3g} times as long as predicted; at that pace "
                 f"{time_text(run.pace * run.predicted)}, {_error(run.error_at_pace)}"),
        *[("planned", f"{time_text(run.planned)}, without interference between devices")]
        * (run.planned != run.predicted),
        ("first step", f"{time_text(run.first)}, not counted"),
    ]  # fmt: skip
    if run.loss:
        first, last = run.loss
        rows.append(("loss", f"{first:.6g}, in the last step {last:.6g}"))
    heading = Text(printable(f"{run.graph} on {run.cluster}, run"), "bold")
    return Group(heading, _grid(rows), Text(), _devices(run))


def _error(error: float) -> str:
    return f"{share_text(abs(error))} {'longer' if error > 0 else 'shorter'}"


def run_figures(run: MeasuredRun) -> dict[str, Any]:
    """The same for JSON: seconds and bytes."""
    return asdict(run) | {
        "error": run.error,
        "error_at_pace": run.error_at_pace,
        "devices": {device.name: asdict(device) for device in run.devices},
    }


def _devices(run: MeasuredRun) -> Table:
    grid = table("", COLUMNS, range(1, 10))
    for device in run.devices:
        full = device.limit is not None and (device.peak or device.predicted_peak) > device.limit
        grid.add_row(
            name_cell(device.name),
            time_text(device.busy),
            time_text(device.predicted_busy),
            share_text(device.busy / run.mean),
            share_text(device.predicted_busy / (run.predicted or 1.0)),
            time_text(device.waited),
            time_text(device.predicted_waited),
            "-" if device.peak is None else size_text(device.peak),
            size_text(device.predicted_peak),
            "none" if device.limit is None else size_text(device.limit),
            style="red" if full else "",
        )
    return grid


def equality_table(equality: Equality, name: str, tolerance: float, why: str) -> RenderableType:
    """The difference between a placed step and the unplaced one, and the verdict.

    Args:
        name: of the model.
        why: the reason for the tolerance.
    """
    output = "loss" if equality.losses else "model results"
    rows = [
        (output, _difference(equality.loss_difference, f"step {equality.worst_step}")),
        ("parameters, buffers", _difference(equality.parameter_difference, equality.name)),
        *[("optimizer state", _difference(equality.optimizer_difference, equality.optimizer_part))]
        * bool(equality.optimizer_state),
        *[("inputs", _difference(equality.input_difference, f"input {equality.worst_input}"))]
        * bool(equality.inputs),
        *[("left out", f"what steps keep in {_left_out_text(equality.left_out)}")]
        * bool(equality.left_out),
        ("changed by the steps", f"{equality.changed} of {len(equality.state)}"),
        ("tolerance", f"{tolerance:g}: {why}"),
    ]
    steps = plural(len(equality.returned), "step")
    heading = Text(printable(f"{name}, {steps} placed and unplaced"), "bold")
    return Group(heading, _grid(rows), Text(), _verdict(equality, tolerance))


def equality_figures(equality: Equality, tolerance: float) -> dict[str, Any]:
    """The same for JSON."""
    return {
        "equal": equality.within(tolerance),
        "tolerance": tolerance,
        "steps": len(equality.returned),
        "losses": equality.losses,
        "loss_difference": equality.loss_difference,
        "loss_step": equality.worst_step if equality.loss_difference else None,
        "parameter_difference": equality.parameter_difference,
        "parameter": equality.name or None,
        "optimizer_difference": equality.optimizer_difference,
        "optimizer_state": equality.optimizer_part or None,
        "input_difference": equality.input_difference,
        "input": equality.worst_input if equality.input_difference else None,
        "left_out": equality.left_out,
        "compared": len(equality.state),
        "changed": equality.changed,
    }


def _left_out_text(names: Sequence[str]) -> str:
    """The first few names, and the number of the others."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(map(printable, names[:3]))}{more}, as no placed one does"


def _difference(size: float, where: str) -> str:
    return f"differs by up to {size:.3g}, in {printable(where)}" if size else "equal"


def _verdict(equality: Equality, tolerance: float) -> Text:
    if equality.within(0.0):
        return Text("Equal: the placed step computes the same numbers, to the last bit.", "green")
    if equality.within(tolerance):
        return Text("Equal within the tolerance.", "green")
    return Text("The placed step differs from the unplaced one.", "bold red")


def _grid(rows: Sequence[tuple[str, str]]) -> Table:
    grid = Table.grid(padding=(0, 2))
    for label, value in rows:
        grid.add_row(Text(label, "dim"), Text(value))
    return grid
