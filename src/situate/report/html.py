"""A result as HTML, for notebooks."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

from situate.errors import SituateError
from situate.report.tables import figures
from situate.report.text import printable
from situate.report.units import size_text

if TYPE_CHECKING:
    from situate.results.result import Result


MAX_OPS = 20_000
"""Most ops of a report within a notebook, whose file would otherwise grow by megabytes."""

ALT = "Ops over time on each device, transfers between them, and the memory of each"
"""Alternative text of the picture; the table has its figures."""


def to_html(result: Result) -> str:
    """A table of figures, the picture, and the report for browsers, which opens on a click.

    The picture is an embedded image, because the styles of inline SVG apply to the whole page. It
    is missing without matplotlib. The report is a page in a sandbox of its own and loads when it is
    opened. A schedule whose calls wait for one another has neither.
    """
    problem = result.problem
    heading = escape(printable(f"{problem.graph.name} on {problem.cluster.name}"))
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(label)}</th>"
        f"<td style='text-align:left'>{escape(printable(value))}</td></tr>"
        for label, value in _rows(result)
    )
    return f"<div><b>{heading}</b><table>{rows}</table>{_picture(result)}{_report(result)}</div>"


def _rows(result: Result) -> list[tuple[str, str]]:
    """The figures of a terminal, with the devices and their memory by name."""
    names, peaks = result.problem.cluster.names, result.schedule.peak.tolist()
    by_name = (f"{name} {size_text(peak)}" for name, peak in zip(names, peaks, strict=True))
    rows = dict(figures(result)) | {"devices used": ", ".join(result.devices_used)}
    return [*rows.items(), ("peak memory", ", ".join(by_name))]


def _picture(result: Result) -> str:
    from situate.report.pictures.picture import Heading, render

    heading = Heading(method=result.method)
    if result.problem.objective == "time":
        heading = replace(heading, lower_bound=result.lower_bound, gap=result.gap)
    try:
        image = render(result.problem, result.schedule, "svg", heading)
    except SituateError:
        return ""
    source = f"data:image/svg+xml;base64,{b64encode(image).decode('ascii')}"
    return f"<img style='max-width:100%' alt='{ALT}' src='{source}'/>"


def _report(result: Result) -> str:
    from situate.report.view.document import page
    from situate.report.view.plan_report import PlanReport

    if result.problem.n > MAX_OPS:
        return (
            f"<p>A report of {result.problem.n:,} ops is too large for a notebook: "
            "<code>situate view</code> writes it.</p>"
        )
    try:
        content = page([PlanReport.of_result(result)])
    except SituateError:
        return ""
    source = f"data:text/html;base64,{b64encode(content).decode('ascii')}"
    return (
        "<details><summary>Timeline, memory and modules to click</summary>"
        "<iframe title='Report of the plan' sandbox='allow-scripts' loading='lazy' "
        f"style='width:100%;height:760px;border:0' src='{source}'></iframe></details>"
    )
