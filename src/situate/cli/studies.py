"""Studies as figures, a table, learning curves and CSV."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from csv import writer
from dataclasses import asdict

from rich.table import Table

from situate.errors import SituateError
from situate.evaluators.measurements import OUTCOMES
from situate.report.learning_curve import Curve, learning_figures
from situate.report.text import printable
from situate.report.units import time_text
from situate.study import Study

HEADER_FIELDS = ("graph", "cluster", "method", "settings", "seed", "evaluator")
"""Fields of a header in the table."""


def figures(study: Study) -> dict[str, object]:
    """The header of a study, and the figures of its samples."""
    counts = {name: int((study.measurements.outcome == i).sum()) for i, name in enumerate(OUTCOMES)}
    return {
        "path": str(study.path),
        "header": study.header,
        "outcomes": counts,
        "samples": learning_figures(study.measurements.seconds),
        "workers": [asdict(worker) for worker in study.workers],
    }


def table(studies: Sequence[Study]) -> Table:
    """A table with one line per study."""
    result = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("study", *HEADER_FIELDS):
        result.add_column(name, overflow="fold")
    for name in ("samples", "failed", "best", "last mean"):
        result.add_column(name, justify="right", no_wrap=True)
    for study in studies:
        result.add_row(*_line(study))
    return result


def _line(study: Study) -> Iterator[str]:
    yield printable(str(study.path))
    for name in HEADER_FIELDS:
        value = study.header.get(name, "")
        # The hash of the graph, or of the cluster, follows its name.
        yield printable(value.rsplit(" ", 1)[0] if name in ("graph", "cluster") else value)
    totals = learning_figures(study.measurements.seconds)
    yield f"{len(study):,} of {int(study.header['samples']):,}"
    yield f"{totals['failures']:,}"
    for name in ("best", "last_60_mean"):
        seconds = totals[name]
        yield "" if seconds is None else time_text(float(seconds), study.header["unit"])


def curves(studies: Sequence[Study]) -> list[Curve]:
    """The learning curves of studies of one problem, by method, or by file if methods repeat.

    Raises:
        SituateError: the problems differ, or a study has no samples.
    """
    for study in studies:
        for name in ("graph", "cluster", "rules"):
            if study.header[name] != studies[0].header[name]:
                raise SituateError(
                    f"{study.path}: is of {name} {study.header[name]!r} and {studies[0].path} of "
                    f"{studies[0].header[name]!r}: draw them one by one"
                )
        if not len(study):
            raise SituateError(f"{study.path}: has no samples yet")
    methods = [study.header["method"] for study in studies]
    distinct = len(set(methods)) == len(methods)
    return [
        Curve.of_samples(
            study.header["method"] if distinct else study.path.stem, study.measurements.seconds
        )
        for study in studies
    ]


def csv(study: Study) -> str:
    """Every sample as a row of a CSV file.

    Columns are number, batch, seconds (empty for a failure), outcome, the worker's place (empty if
    the study does not record workers), and the index of each op's device.
    """
    text = io.StringIO()
    rows = writer(text, lineterminator="\n")
    rows.writerow(["number", "batch", "seconds", "outcome", "worker", "placement"])
    measurements = study.measurements
    columns = zip(
        study.batch.tolist(),
        measurements.seconds.tolist(),
        measurements.outcome.tolist(),
        measurements.origins or (None,) * len(study),
        study.placements(),
        strict=True,
    )
    for number, (batch, seconds, outcome, worker, placement) in enumerate(columns):
        duration = repr(seconds) if outcome == 0 else ""
        place = worker.place if worker else ""
        devices = " ".join(map(str, placement))
        rows.writerow([number, batch, duration, OUTCOMES[outcome], place, devices])
    return text.getvalue()
