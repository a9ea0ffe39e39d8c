"""A user's wait: for `import situate`, for help, and for the first plan that fits."""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator, Sequence

from benchmarks.lib import child
from benchmarks.lib.record import Row, Target, record

IMPORT_WANTED = 0.3
PLAN_WANTED = 1.0
"""Seconds, from the start of the process to its end."""

HEAVY = ("torch", "transformers", "onnx", "matplotlib", "numpy", "ortools")
"""Packages whose loading takes time."""

FIRST_PLANS = (1, 2, 4, 8, 16, 32, 64)
"""Evaluations to stop after, until the plan fits."""

IMPORT, HELP = "import situate", "situate --help"


def main(arguments: list[str] | None = None) -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--network", default="inception_v3")
    parser.add_argument("--cluster", default="k80-4")
    options = parser.parse_args(arguments)
    plan = f"situate plan {options.network} --cluster {options.cluster}"
    commands = {
        "python -c pass": child.python("pass"),
        IMPORT: child.python(IMPORT),
        HELP: child.situate("--help"),
        f"{plan}, to the first plan that fits": _first_plan(options.network, options.cluster),
    }
    rows = [_row(what, command, options.repeats) for what, command in commands.items()]
    loaded = _loaded()
    targets = [*_targets(rows, [IMPORT_WANTED] * 2 + [PLAN_WANTED]), _without_torch(loaded)]
    record("startup", {"fresh processes": rows, "loaded": loaded}, targets, options=options)


def _row(what: str, command: Sequence[str], repeats: int) -> Row:
    """Wall time includes delays by other processes; CPU time does not."""
    children = [child.run(command) for _ in range(repeats + 1)][1:]
    if any(process.status for process in children):
        raise RuntimeError(f"{what}: {children[0].errors}")
    return {
        "what": what,
        "seconds_median": statistics.median(process.seconds for process in children),
        "seconds_best": min(process.seconds for process in children),
        "cpu_seconds_median": statistics.median(process.cpu_seconds for process in children),
        "cpu_seconds_best": min(process.cpu_seconds for process in children),
        "peak_mb": max(process.peak_bytes for process in children) / 1e6,
        "repeats": repeats,
    }


def _first_plan(network: str, cluster: str) -> list[str]:
    """The command that stops at the first plan that fits, and then says it."""
    for evaluations in map(str, FIRST_PLANS):
        options = ["--cluster", cluster, "--evaluations", evaluations, "--json"]
        command = child.situate("plan", network, *options)
        process = child.run(command)
        if process.status == 0 and json.loads(process.output)["feasible"]:
            return command
    raise RuntimeError(process.errors)


def _loaded() -> list[Row]:
    """Which heavy packages a fresh process has loaded."""
    after = {
        IMPORT: "import situate",
        HELP: "import contextlib, io, situate.cli\n"
        "with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())):\n"
        "    situate.cli.main(['--help'])",
    }
    return [{"after": what, **_packages(code)} for what, code in after.items()]


def _packages(code: str) -> Row:
    show = f"\nimport json, sys\nprint(json.dumps([p in sys.modules for p in {HEAVY!r}]))"
    process = child.run(child.python(code + show))
    if process.status:
        raise RuntimeError(process.errors)
    return dict(zip(HEAVY, json.loads(process.output), strict=True))


def _targets(rows: list[Row], wanted: list[float]) -> Iterator[Target]:
    for row, seconds in zip(rows[1:], wanted, strict=True):
        measured = row["seconds_median"]
        yield Target(row["what"], f"under {seconds:g} s", f"{measured:.3f} s", measured < seconds)


def _without_torch(loaded: list[Row]) -> Target:
    without = not any(row["torch"] for row in loaded)
    return Target(f"{IMPORT}, {HELP}", "torch is not loaded", "not" if without else "is", without)


if __name__ == "__main__":
    main()
