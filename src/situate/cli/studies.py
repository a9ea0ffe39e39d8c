"""Studies for people: figures, learning curves and rows."""

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

SHOWN = ("graph", "cluster", "method", "settings", "seed", "evaluator")
"""Fields of a header that the table has."""


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
    """A line a study."""
    made = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("study", *SHOWN):
        made.add_column(name, overflow="fold")
    for name in ("samples", "failed", "best", "last mean"):
        made.add_column(name, justify="right", no_wrap=True)
    for study in studies:
        made.add_row(*_line(study))
    return made


def _line(study: Study) -> Iterator[str]:
    yield printable(str(study.path))
    for name in SHOWN:
        value = study.header.get(name, "")
        # A graph and a cluster are written with their hash behind them.
        yield printable(value.rsplit(" ", 1)[0] if name in ("graph", "cluster") else value)
    found = learning_figures(study.measurements.seconds)
    yield f"{len(study):,} of {int(study.header['samples']):,}"
    yield f"{found['failures']:,}"
    for name in ("best", "last_60_mean"):
        seconds = found[name]
        yield "" if seconds is None else time_text(float(seconds), study.header["unit"])


def curves(studies: Sequence[Study]) -> list[Curve]:
    """The learning curves of studies of one problem, by method, or by file where several are of one
    method.

    Raises:
        SituateError: studies of different problems, or one without samples.
    """
    of = ("graph", "cluster", "rules")
    for study in studies:
        for name in of:
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
    """Every sample as a row of a CSV file: number, batch, seconds (empty where the step did not
    end), outcome, where the worker was (empty where they are not told apart), and the index of the
    device of each op."""
    text = io.StringIO()
    rows = writer(text, lineterminator="\n")
    rows.writerow(["number", "batch", "seconds", "outcome", "worker", "placement"])
    measured = study.measurements
    columns = zip(
        study.batch.tolist(),
        measured.seconds.tolist(),
        measured.outcome.tolist(),
        measured.origins or (None,) * len(study),
        study.placements(),
        strict=True,
    )
    for number, (batch, seconds, outcome, worker, placement) in enumerate(columns):
        shown, where = repr(seconds) if outcome == 0 else "", worker.place if worker else ""
        devices = " ".join(map(str, placement))
        rows.writerow([number, batch, shown, OUTCOMES[outcome], where, devices])
    return text.getvalue()
