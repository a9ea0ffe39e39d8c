"""A forecast as tables for the terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from situate.report.error_bar import ROOFLINE_OP, ROOFLINE_STEP, ErrorBar
from situate.report.forecast import DeviceForecast, Forecast
from situate.report.tables import ONE_STEP, name_cell, table
from situate.report.text import printable
from situate.report.units import share_text, size_text, time_text

COLUMNS = {
    "weights": "weights",
    "held": "held all step",
    "gradients": "gradients",
    "optimiser": "optimiser",
    "activations": "activations",
    "received": "received",
    "workspace": "workspace",
}

SOURCES = {
    "graph": "given in the graph",
    "measured": "measured",
    "fitted": "from a roofline fitted to measurements",
    "roofline": "from the roofline alone",
}


def forecast_table(forecast: Forecast) -> RenderableType:
    """The step's time, the sources of its error bar, the memory of each device, and the verdict."""
    heading = f"{forecast.graph} on {forecast.cluster}, a forecast"
    lines = [Text(line) for line in _time(forecast)]
    return Group(
        Text(printable(heading), "bold"),
        *lines,
        Text(),
        _memory(forecast),
        *_memory_note(forecast),
        Text(),
        _verdict(forecast),
    )


def _time(forecast: Forecast) -> list[str]:
    bar, unit = forecast.bar, forecast.unit
    step = f"step {time_text(forecast.makespan, unit)}"
    if forecast.period is not None:
        step += f", one every {time_text(forecast.period, unit)}"
    if forecast.method:
        step += f" ({forecast.method})"
    if bar.low == bar.high:
        return [step, "The graph's own times and the links' are taken as they are."]
    low, high = time_text(bar.low, unit), time_text(bar.high, unit)
    return [f"{step}; eight times of ten between {low} and {high}", *_sources(bar)]


def _memory_note(forecast: Forecast) -> list[Text]:
    return [] if forecast.period is None else [Text(f"Memory is {ONE_STEP}.", "dim")]


def _sources(bar: ErrorBar) -> list[str]:
    """The sources of the range."""
    parts = [f"{share_text(share)} {SOURCES[name]}" for name, share in bar.shares.items()]
    lines = [f"Computing on the critical path: {', '.join(parts)}; transfers as the links say."]
    if "roofline" in bar.shares:
        low, high = ROOFLINE_OP
        lines.append(
            f"The roofline's range: of ten ops eight take {low} to {high} times its prediction, "
            f"and whole steps up to {ROOFLINE_STEP} times (docs/costs.md)."
        )
    return lines


def _memory(forecast: Forecast) -> Table:
    """The table of memory. A column for bytes of unknown role appears where there are any."""
    in_use = [device for device in forecast.devices if device.ops or device.peak]
    has_other = any(device.content.held for device in in_use)
    parts = [part for part in COLUMNS if part != "held" or has_other]
    columns = ["device", *(COLUMNS[part] for part in parts), "peak", "limit", "used", "fits"]
    grid = table("memory at its fullest", "|".join(columns), range(1, len(columns) - 1))
    for device in in_use:
        grid.add_row(
            name_cell(device.name),
            *(size_text(getattr(device.content, part)) for part in parts),
            *_limits(device),
            style="" if device.fits else "red",
        )
    if unused := len(forecast.devices) - len(in_use):
        grid.add_row(Text(f"{unused} more", "dim"), *[Text("0", "dim")] * (len(parts) + 1))
    return grid


def _limits(device: DeviceForecast) -> list[str]:
    fits = "yes" if device.fits else "no"
    if device.limit is None:
        return [size_text(device.peak), "none", "", fits]
    share = share_text(device.peak / device.limit) if device.limit else ""
    return [size_text(device.peak), size_text(device.limit), share, fits]


def _verdict(forecast: Forecast) -> Text:
    full = [device for device in forecast.devices if not device.fits]
    if not full:
        return Text("It fits.", "bold green")
    over = (f"{printable(d.name, 40)} by {size_text(d.peak - (d.limit or 0))}" for d in full)
    return Text(f"It does not fit: {', '.join(over)} too much.", "bold red")
