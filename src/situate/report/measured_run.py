"""A plan that ran: what was measured beside what was predicted, and whether it computes right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from situate.data.problem import UNLIMITED, Problem
from situate.report.computing_time import computing_time
from situate.report.tables import name_cell, table
from situate.report.text import plural, printable
from situate.report.units import share_text, size_text, time_text
from situate.results.expected import expected_schedule, expected_seconds
from situate.runtime.equality import Equality
from situate.runtime.measure import Measured
from situate.schedule.schedule import Schedule

COLUMNS = "device|busy|predicted|share|predicted|waiting|predicted|peak memory|predicted|limit"


@dataclass(frozen=True)
class DeviceRun:
    """One device in a step: seconds, and bytes.

    Attributes:
        busy, waited: measured, of its own steps; 0 for a device that is not used.
        predicted_busy: seconds in which it computes.
        peak: measured; None where it was not.
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
    """A step that was measured and predicted; times in seconds.

    Attributes:
        first: the step that was dropped.
        predicted, planned: with and without what devices cost one another.
        pace: how many times longer than predicted devices were busy, all together.
        seconds: of the steps that were averaged.
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
        """The error of the prediction, as a fraction of what was measured; negative where it is too
        short."""
        return self.predicted / self.mean - 1

    @property
    def error_at_pace(self) -> float:
        """The same of a prediction with ops as long as they took: what is left of the error is that
        of the order, of transfers and of waiting."""
        return self.pace * self.predicted / self.mean - 1


def measured_run(
    problem: Problem,
    schedule: Schedule,
    measured: Measured,
    used: Sequence[int],
    peaks: Sequence[int] | None = None,
    expected: Sequence[int] | None = None,
) -> MeasuredRun:
    """A measured run of a plan beside its prediction.

    Args:
        used: the devices that `measured` speaks of.
        peaks: by device that is used, measured bytes.
        expected: by device, predicted bytes; by default those of the schedule.
    """
    if expected is None:
        expected = schedule.peak.tolist()
    place = {device: k for k, device in enumerate(used)}
    computed = computing_time(problem, schedule)

    def device_run(d: int) -> DeviceRun:
        k, capacity, busy = place.get(d), int(problem.capacity[d]), float(computed[d])
        return DeviceRun(
            name=problem.cluster.names[d],
            busy=0.0 if k is None else measured.busy[k],
            waited=0.0 if k is None else measured.waited[k],
            predicted_busy=busy,
            predicted_waited=max(schedule.makespan - busy, 0.0) if k is not None else 0.0,
            peak=None if k is None or peaks is None else peaks[k],
            predicted_peak=expected[d],
            limit=capacity if capacity < UNLIMITED else None,
        )

    return MeasuredRun(
        graph=problem.graph.name,
        cluster=problem.cluster.name,
        first=measured.first,
        seconds=measured.seconds,
        mean=measured.mean,
        median=measured.median,
        deviation=measured.deviation,
        predicted=expected_seconds(problem, schedule),
        planned=schedule.makespan,
        pace=_pace(expected_schedule(problem, schedule), measured),
        loss=(measured.losses[0], measured.losses[-1]) if measured.losses else None,
        devices=tuple(map(device_run, range(problem.d))),
    )


def _pace(expected: Schedule, measured: Measured) -> float:
    predicted = float((expected.end - expected.start).sum())
    return sum(measured.busy) / predicted if predicted else 1.0


def run_table(found: MeasuredRun) -> RenderableType:
    """The step's time, its spread and the prediction's error; busy, waiting and full devices."""
    spread = f"{time_text(min(found.seconds))} to {time_text(max(found.seconds))}"
    rows = [
        ("measured", f"{time_text(found.mean)}, the mean of {plural(len(found.seconds), 'step')}"),
        ("spread", f"{spread}, median {time_text(found.median)}, "
                   f"standard deviation {time_text(found.deviation)}"),
        ("predicted", f"{time_text(found.predicted)}, {_error(found.error)}"),
        ("pace", f"ops took {found.pace:.3g} times as long as predicted; at that pace "
                 f"{time_text(found.pace * found.predicted)}, {_error(found.error_at_pace)}"),
        *[("planned", f"{time_text(found.planned)}, without what devices cost one another")]
        * (found.planned != found.predicted),
        ("first step", f"{time_text(found.first)}, not counted"),
    ]  # fmt: skip
    if found.loss:
        first, last = found.loss
        rows.append(("loss", f"{first:.6g}, in the last step {last:.6g}"))
    heading = Text(printable(f"{found.graph} on {found.cluster}, run"), "bold")
    return Group(heading, _grid(rows), Text(), _devices(found))


def _error(error: float) -> str:
    return f"{share_text(abs(error))} {'longer' if error > 0 else 'shorter'}"


def run_figures(found: MeasuredRun) -> dict[str, Any]:
    """The same for JSON: seconds and bytes."""
    return asdict(found) | {
        "error": found.error,
        "error_at_pace": found.error_at_pace,
        "devices": {device.name: asdict(device) for device in found.devices},
    }


def _devices(found: MeasuredRun) -> Table:
    made = table("", COLUMNS, range(1, 10))
    for device in found.devices:
        full = device.limit is not None and (device.peak or device.predicted_peak) > device.limit
        made.add_row(
            name_cell(device.name),
            time_text(device.busy),
            time_text(device.predicted_busy),
            share_text(device.busy / found.mean),
            share_text(device.predicted_busy / (found.predicted or 1.0)),
            time_text(device.waited),
            time_text(device.predicted_waited),
            "-" if device.peak is None else size_text(device.peak),
            size_text(device.predicted_peak),
            "none" if device.limit is None else size_text(device.limit),
            style="red" if full else "",
        )
    return made


def equality_table(found: Equality, name: str, tolerance: float, why: str) -> RenderableType:
    """The difference between a placed step and the unplaced one, and the verdict.

    Args:
        name: of what was compared.
        why: what the tolerance follows from.
    """
    what = "loss" if found.losses else "what the model returns"
    rows = [
        (what, _difference(found.loss_difference, f"step {found.worst_step}")),
        ("parameters, buffers", _difference(found.parameter_difference, found.name)),
        *[("optimizer state", _difference(found.kept_difference, found.kept_name))]
        * bool(found.kept),
        *[("inputs", _difference(found.input_difference, f"input {found.worst_input}"))]
        * bool(found.inputs),
        *[("left out", f"what steps keep in {_listed(found.left_out)}")] * bool(found.left_out),
        ("changed by the steps", f"{found.changed} of {len(found.state)}"),
        ("tolerance", f"{tolerance:g}: {why}"),
    ]
    steps = plural(len(found.returned), "step")
    heading = Text(printable(f"{name}, {steps} placed and unplaced"), "bold")
    return Group(heading, _grid(rows), Text(), _verdict(found, tolerance))


def equality_figures(found: Equality, tolerance: float) -> dict[str, Any]:
    """The same for JSON."""
    return {
        "equal": found.within(tolerance),
        "tolerance": tolerance,
        "steps": len(found.returned),
        "losses": found.losses,
        "loss_difference": found.loss_difference,
        "loss_step": found.worst_step if found.loss_difference else None,
        "parameter_difference": found.parameter_difference,
        "parameter": found.name or None,
        "optimizer_difference": found.kept_difference,
        "optimizer_state": found.kept_name or None,
        "input_difference": found.input_difference,
        "input": found.worst_input if found.input_difference else None,
        "left_out": found.left_out,
        "compared": len(found.state),
        "changed": found.changed,
    }


def _listed(names: Sequence[str]) -> str:
    """The first few of them."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(map(printable, names[:3]))}{more}, as no placed one does"


def _difference(size: float, where: str) -> str:
    return f"differs by up to {size:.3g}, in {printable(where)}" if size else "equal"


def _verdict(found: Equality, tolerance: float) -> Text:
    if found.within(0.0):
        return Text("Equal: the placed step computes the same numbers, to the last bit.", "green")
    if found.within(tolerance):
        return Text("Equal within the tolerance.", "green")
    return Text("The placed step differs from the unplaced one.", "bold red")


def _grid(rows: Sequence[tuple[str, str]]) -> Table:
    grid = Table.grid(padding=(0, 2))
    for label, value in rows:
        grid.add_row(Text(label, "dim"), Text(value))
    return grid
