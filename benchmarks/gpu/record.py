"""`python -m benchmarks.gpu.record FILE`: tables of a report.

Writes `benchmarks/results/gpu.json` in the form of all benchmarks, prints its tables, and prints
lines for a cluster file of such a GPU: launch, efficiencies and links to the host.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.gpu.report import FORMAT, one_line
from benchmarks.lib.record import RESULTS, Row, Target, show, write_origin
from situate.data.costs import Efficiency, MeasuredDevice, Timing
from situate.data.graph import Op
from situate.errors import SituateError
from situate.profiling.op_costs import efficiencies

NAME = "gpu"

OF_ARITHMETIC = ("matmul", "convolution", "attention")
"""Classes whose fraction in a cluster file is that of the peak FLOP/s; of all others, that of the
bandwidth."""

LAUNCHED = "aten.add_"
"""The op whose seconds, one of many in a row, are a cluster file's `launch`."""

STEP_ERROR, MEMORY_ERROR = 0.25, 0.10
"""Errors of a prediction that are hoped for, as fractions of the measured figure."""


def main(arguments: list[str] | None = None) -> None:
    """Write and print; a rehearsal only where it is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.record", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--folder", type=Path, default=RESULTS, help="of the record")
    parser.add_argument("--rehearsal", action="store_true", help="take the report of a rehearsal")
    options = parser.parse_args(arguments)
    try:
        report = read(options.file, rehearsal=options.rehearsal)
    except SituateError as error:
        sys.exit(f"error: {error}")
    every = tables(report)
    for title, rows in every.items():
        show(f"{NAME}: {title}", rows)
    write_origin(options.folder / f"{NAME}.json", origin(report), every, targets(every["networks"]))
    print(cluster_lines(report))


def read(path: Path, *, rehearsal: bool = False) -> dict[str, Any]:
    """A report.

    Raises:
        SituateError: no such file, not a report, or that of a rehearsal where none is wanted.
    """
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise SituateError(f"{path}: {error}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise SituateError(f"{path}: not a report of 'python -m benchmarks.gpu'")
    options = content["options"]
    if not rehearsal and (options["tiny"] or options["device"] == "cpu"):
        raise SituateError(f"{path}: a rehearsal, not a record: run the command on a GPU first")
    return content


def origin(report: dict[str, Any]) -> dict[str, Any]:
    """The commit, date, machine and versions of a report."""
    machine = figures(report, "machine")
    return {
        "commit": report["commit"],
        "date": report["date"],
        "machine": {**report["host"], **machine.get("host", {}), "gpu": machine.get("gpu", {})},
        "versions": machine.get("versions", {"python": report["python"]}),
        "options": report["options"],
    }


def figures(report: dict[str, Any], stage: str) -> dict[str, Any]:
    """The figures of a stage; none where it was not run."""
    return dict(report["stages"].get(stage, {}).get("figures", {}))


def tables(report: dict[str, Any]) -> dict[str, list[Row]]:
    """Rows by title."""
    return {
        "stages": [_stage(name, entry) for name, entry in report["stages"].items()],
        "networks": [*_networks(report)],
        "pairs": [*_pairs(report)],
        "links": figures(report, "links").get("links", []),
        "launches": figures(report, "launches").get("launches", []),
        "kernels": [*_kernels(report)],
        "op classes": [*_classes(report)],
        "tests": [*_tests(report)],
    }


def _stage(name: str, entry: dict[str, Any]) -> Row:
    return {
        "stage": name,
        "verdict": entry["verdict"],
        "seconds": entry["seconds"],
        "error": one_line(entry["verdict"], entry["error"]),
    }


def _of(report: dict[str, Any], beginning: str) -> Iterator[dict[str, Any]]:
    """The figures of the stages whose names begin so, where there are any."""
    for name in report["stages"]:
        if name.startswith(beginning) and (noted := figures(report, name)):
            yield noted


def _networks(report: dict[str, Any]) -> Iterator[Row]:
    for noted in _of(report, "networks."):
        eager, placed = noted.get("eager", {}), noted.get("placed", {})
        predicted, seconds = noted.get("predicted_seconds"), placed.get("seconds")
        allocated, planned = placed.get("allocated_bytes"), noted.get("predicted_bytes")
        yield {
            "network": noted["network"],
            "dtype": noted["dtype"],
            "ops": noted["ops"],
            "not_measured": noted.get("missing_count"),
            "eager_seconds": eager.get("seconds"),
            "placed_seconds": seconds,
            "predicted_seconds": predicted,
            "roofline_seconds": noted.get("roofline_seconds"),
            "placed_from_host": placed.get("seconds_from_host"),
            "placed_over_eager": _ratio(seconds, eager.get("seconds")),
            "error": _error(predicted, seconds),
            "roofline_error": _error(noted.get("roofline_seconds"), seconds),
            "eager_allocated": eager.get("allocated_bytes"),
            "placed_allocated": allocated,
            "placed_reserved": placed.get("reserved_bytes"),
            "predicted_bytes": planned,
            "memory_error": _error(planned, allocated),
            "first_losses": [*eager.get("losses", [])[:1], *placed.get("losses", [])[:1]],
        }


def _pairs(report: dict[str, Any]) -> Iterator[Row]:
    for noted in _of(report, "pair."):
        for plan, row in noted.get("plans", {}).items():
            yield {
                "network": noted["network"],
                "plan": plan,
                "ops": row.get("ops"),
                "transfers": row.get("transfers"),
                "predicted_seconds": row.get("predicted_seconds"),
                "seconds": row.get("seconds"),
                "error": _error(row.get("predicted_seconds"), row.get("seconds")),
                "eager_seconds": noted.get("eager_seconds"),
                "eager_cpu_seconds": noted.get("eager_cpu_seconds"),
                "equal": row.get("equal"),
                "tolerance": noted["tolerance"],
                "loss_difference": row.get("loss_difference"),
                "parameter_difference": row.get("parameter_difference"),
            }


def _kernels(report: dict[str, Any]) -> Iterator[Row]:
    columns = ("class", "op", "size", "dtype", "seconds", "flop_rate", "byte_rate",
               "of_peak_flops", "of_bandwidth", "error")  # fmt: skip
    for row in figures(report, "classes").get("kernels", []):
        yield {column: row.get(column) for column in columns}


def _classes(report: dict[str, Any]) -> Iterator[Row]:
    """The fit of each op class to the ops of all networks in all dtypes."""
    for name, fit in fits(report).items():
        yield {
            "class": name,
            "arithmetic": fit.arithmetic,
            "memory": fit.memory,
            "launches": fit.launches,
            "ops": fit.ops,
            "error": fit.error,
        }


def fits(report: dict[str, Any]) -> dict[str, Efficiency]:
    """By op class, fits to the samples of all networks together as `situate profile` fits to
    those of one."""
    ops: list[Op] = []
    seconds: dict[str, Timing] = {}
    every = [noted for noted in _of(report, "networks.") if noted.get("samples")]
    for noted in every:
        for kind, dtype, flops, traffic, median, _ in noted["samples"]:
            name = str(len(ops))
            ops.append(Op(name, kind, flops=flops, traffic=traffic, dtype=dtype, signature=name))
            seconds[name] = Timing(median, median, median, 1)
    if not ops:
        return {}
    peaks, launch = every[0]["peaks"], min(noted["launch"] for noted in every)
    device = MeasuredDevice("gpu0", "gpu", flops=peaks["flops"], bandwidth=peaks["bandwidth"],
                            launch=launch, seconds=seconds)  # fmt: skip
    return efficiencies(ops, device)


def _tests(report: dict[str, Any]) -> Iterator[Row]:
    for name in report["stages"]:
        if name.startswith("suite.") and (counts := figures(report, name).get("counts")):
            outcomes = ("passed", "failed", "errors", "skipped")
            yield {"tests": name, **{outcome: counts.get(outcome, 0) for outcome in outcomes}}


def targets(networks: list[Row]) -> list[Target]:
    """The largest errors of the predictions of networks, beside those that are hoped for."""
    rows = (("error", "a step's seconds", STEP_ERROR), ("memory_error", "its bytes", MEMORY_ERROR))
    return [_target(networks, *row) for row in rows if any(r[row[0]] is not None for r in networks)]


def _target(networks: list[Row], column: str, words: str, most: float) -> Target:
    worst = max(abs(row[column]) for row in networks if row[column] is not None)
    text = f"largest error of {words}, by measured ops, one device"
    return Target(text, f"at most {most:.0%}", f"{worst:.1%}", worst <= most)


def cluster_lines(report: dict[str, Any]) -> str:
    """The lines of a cluster file that the figures replace, with their source; of stages that have
    none, none."""
    rows = figures(report, "launches").get("launches", [])
    model = figures(report, "machine").get("gpu", {}).get("name", report["options"]["device"])
    lines = [
        f"# Measured on {model}: python -m benchmarks.gpu, {report['date'][:10]}, commit "
        f"{report['commit'][:9]}.",
    ]
    lines += [f"launch = {row['row_seconds']:.2g}" for row in rows if row["op"] == LAUNCHED]
    fractions = {name: fraction(name, fit) for name, fit in fits(report).items()}
    inside = ", ".join(f"{name} = {value:.2g}" for name, value in fractions.items())
    lines += [f"efficiency = {{ {inside} }}"] * bool(fractions)
    for link in figures(report, "links").get("links", []):
        if link["memory"] == "pinned" and link["direction"] != "both":
            lines += ["", *_link(link)]
    return "\n".join(lines)


def fraction(name: str, fit: Efficiency) -> float:
    """The one fraction of a class that a cluster file states, at most 1."""
    return min(1.0, fit.arithmetic if name in OF_ARITHMETIC else fit.memory)


def _link(link: dict[str, Any]) -> list[str]:
    source, goal = ("cpu", "gpu*") if link["direction"] == "to device" else ("gpu*", "cpu")
    return [
        "[[links]]",
        f'from = "{source}"',
        f'to = "{goal}"',
        f"bandwidth = {link['bandwidth']:.3g}",
        f"latency = {link['latency']:.2g}",
        "both = false",
    ]


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def _error(predicted: float | None, seconds: float | None) -> float | None:
    ratio = _ratio(predicted, seconds)
    return None if ratio is None else ratio - 1


if __name__ == "__main__":
    main()
