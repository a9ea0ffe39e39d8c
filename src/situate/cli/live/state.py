"""The state of searches as a live page shows it: figures, curves and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from situate.cli import studies as study_figures
from situate.cli.live.progress_file import (
    MARK,
    Line,
    ProgressLine,
    SearchEnd,
    SearchHeader,
    read_progress,
)
from situate.errors import SituateError
from situate.report.learning_curve import Curve
from situate.report.tables import OBJECTIVES
from situate.report.text import plural, printable
from situate.report.units import gap_text, time_text, value_text
from situate.study import Study

SQLITE = b"SQLite format 3\0"
"""The first bytes of every study."""
MAX_POINTS = 1500
"""Most points of a curve; the page has fewer pixels."""

Point = list[float]


def is_live(path: str) -> bool:
    """True if a file is one of --progress, or a study."""
    file = Path(path)
    if not file.is_file():
        return False
    with file.open("rb") as stream:
        begin = stream.read(max(len(MARK), len(SQLITE)))
    return begin.startswith((MARK, SQLITE))


def live_state(paths: Sequence[str]) -> dict[str, Any]:
    """The state of all files: `sections` with figures, charts and tables, in JSON's types."""
    sections: list[dict[str, Any]] = []
    for path in paths:
        try:
            sections += _sections(path)
        except SituateError as error:
            # A search that writes a study locks it now and then.
            sections.append({"title": printable(Path(path).name), "note": printable(str(error))})
    return {"sections": sections}


def _sections(path: str) -> list[dict[str, Any]]:
    with Path(path).open("rb") as stream:
        is_study = stream.read(len(SQLITE)) == SQLITE
    if is_study:
        return [_study_section(Study.read(path))]
    searches = read_progress(path)
    # The latest search comes first.
    return [_search_section(lines) for lines in reversed(searches)]


def _search_section(lines: Sequence[Line]) -> dict[str, Any]:
    header = next(line for line in lines if isinstance(line, SearchHeader))
    reports = [line for line in lines if isinstance(line, ProgressLine)]
    end = next((line for line in lines if isinstance(line, SearchEnd)), None)
    states: list[ProgressLine | SearchEnd] = [*reports, *([end] if end else [])]
    return {
        "title": printable(f"{header.method}: {header.graph} on {header.cluster}"),
        "running": end is None,
        "figures": _search_figures(header, states[-1] if states else None, end),
        "charts": [_values_chart(header, states)],
        "workers": [[name, f"{value:.4g}"] for name, value in _figures(reports).items()],
    }


def _figures(reports: Sequence[ProgressLine]) -> dict[str, float]:
    return reports[-1].figures if reports else {}


def _search_figures(
    header: SearchHeader, latest: ProgressLine | SearchEnd | None, end: SearchEnd | None
) -> list[list[str]]:
    if latest is None:
        return [["state", "no plan yet"]]
    rows = [["state", "ended" if end else "running"]]
    if latest.value is not None:
        text = value_text(latest.value, header.objective, header.unit)
        rows.append([f"best {_objective(header)}", text])
    rows.append(["fits in memory", "yes" if latest.feasible else "not yet"])
    if latest.lower_bound is not None and latest.feasible and latest.value:
        bound = value_text(latest.lower_bound, header.objective, header.unit)
        by = f", by {end.bounded_by}" if end and end.bounded_by else ""
        rows.append(["lower bound", f"{bound}{by}"])
        rows.append(["gap", gap_text(_gap(latest.value, latest.lower_bound))])
    rows.append(["search", f"{latest.evaluations:,} evaluations in {latest.seconds:.1f} s"])
    return rows


def _objective(header: SearchHeader) -> str:
    return {**OBJECTIVES}.get(header.objective, header.objective)


def _gap(value: float, bound: float) -> float:
    return value / bound - 1 if bound > 0 else float("inf")


def _values_chart(
    header: SearchHeader, reports: Sequence[ProgressLine | SearchEnd]
) -> dict[str, Any]:
    """The best value and the bound over the seconds of a search."""
    values = [[r.seconds, r.value] for r in reports if r.feasible and r.value is not None]
    bounds = [
        [r.seconds, r.lower_bound]
        for r in reports
        if r.feasible and r.lower_bound is not None and r.lower_bound > 0
    ]
    return {
        "title": f"{_objective(header)} over the seconds of the search",
        "unit": "B" if header.objective == "memory" else header.unit,
        "lines": [
            {"name": "best", "step": True, "points": _thinned(values)},
            {"name": "lower bound", "step": True, "points": _thinned(bounds)},
        ],
    }


def _study_section(study: Study) -> dict[str, Any]:
    header, unit = study.header, study.header["unit"]
    seconds = study.measurements.seconds
    curve = Curve.of_samples(header["method"], seconds)
    content: Any = study_figures.figures(study)
    totals = content["samples"]
    best = "none" if totals["best"] is None else time_text(totals["best"], unit)
    names = [header[key].rsplit(" ", 1)[0] for key in ("graph", "cluster")]
    return {
        "title": printable(f"{header['method']}: {names[0]} on {names[1]}"),
        "running": len(study) < int(header["samples"]),
        "figures": [
            ["samples", f"{len(study):,} of {int(header['samples']):,}"],
            ["best", best],
            ["failures", f"{totals['failures']:,}"],
            *[[f"outcome {name}", f"{count:,}"] for name, count in content["outcomes"].items()],
        ],
        "charts": [
            {
                "title": "step time over samples",
                "unit": unit,
                "lines": [
                    {"name": "best", "step": True, "points": _of_array(curve.best)},
                    {"name": "mean of the last 60", "points": _of_array(curve.mean)},
                ],
            }
        ],
        "workers": [[name, plural(count, "sample")] for name, count in _loads(study).items()],
        "finalists": _finalists(study),
    }


def _finalists(study: Study) -> list[list[str]]:
    """The devices of each finalist, and its median seconds; the fastest comes first."""
    medians = [(float(np.median(s)), len(s), placement) for placement, s in study.finalists()]
    rows = []
    for seconds, count, placement in sorted(medians, key=lambda row: row[:2]):
        devices, ops = np.unique(placement, return_counts=True)
        loads = (f"{k:,} on device {d}" for d, k in zip(devices, ops, strict=True))
        time = time_text(seconds, study.header["unit"]) if np.isfinite(seconds) else "failed"
        rows.append([f"ops: {', '.join(loads)}", f"{time}, {plural(count, 'measurement')}"])
    return rows


def _loads(study: Study) -> Counter[str]:
    """The samples of each worker, if workers are distinguished."""
    return Counter(printable(origin.place) for origin in study.measurements.origins if origin)


def _of_array(values: np.ndarray[Any, np.dtype[np.float64]]) -> list[Point]:
    """Points of the finite values, by their number from 1."""
    finite = np.flatnonzero(np.isfinite(values))
    return _thinned([[float(i + 1), float(values[i])] for i in finite.tolist()])


def _thinned(points: list[Any]) -> list[Point]:
    """Evenly spaced points, the first and the last among them."""
    if len(points) <= MAX_POINTS:
        return points
    places = np.linspace(0, len(points) - 1, MAX_POINTS).astype(int)
    return [points[place] for place in places.tolist()]
