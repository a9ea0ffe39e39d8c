"""`python -m benchmarks.homes.llamacpp`: every buffer that the real llama.cpp reports, against
situate's prediction.

Models run in llama-server on up to three RPC devices of this machine, with the flags that situate
exports. Full-size models, whose weights are a hole in the file, are counted by llama-fit-params,
which prints whole MiB.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from statistics import median

from benchmarks.homes.llamacpp.layouts import GPUS, cases, planned
from benchmarks.homes.llamacpp.model_files import (
    FULL_SIZE,
    MODELS,
    full_size_model,
    random_model,
)
from benchmarks.homes.llamacpp.runs import (
    MIB,
    Buffer,
    compared,
    layers_agree,
    predicted_buffers,
    rpc_flags,
    rpc_layout,
    run_server,
    server_build,
)
from benchmarks.homes.llamacpp.servers import free_ports, rpc_servers
from benchmarks.homes.llamacpp.sources import programs, real_model
from benchmarks.lib.record import ROOT, Row, Target, record
from situate.errors import SituateError
from situate.language import read_language_model
from situate.language.cache import CacheOptions
from situate.language.compute_buffers import Build
from situate.language.layout import Layout
from situate.language.memory import device_memory, is_pipelined
from situate.language.model import LanguageModel
from situate.language.planning.fit_params import PROGRAM, ask

FOLDER = ROOT / "build" / "llamacpp" / "models"
REAL = "gemma3 270M"
GOAL_MIB = 2.0
NAMES = [f"RPC{i}" for i in range(GPUS)]


def run_rows(
    binaries: Path, name: str, path: Path, endpoints: Sequence[str], most: int
) -> Iterator[Row]:
    """A row for each of the first layouts of a model, as llama-server runs it."""
    model = read_language_model(path)
    devices = {f"RPC0[{endpoint}]": NAMES[i] for i, endpoint in enumerate(endpoints)}
    devices |= {f"RPC{i}": NAMES[i] for i in range(GPUS)}
    for title, layout, options in islice((planned(model), *cases(model)), most):
        layout = rpc_layout(layout)
        words = rpc_flags(model, layout, options, endpoints)
        flags = " ".join(re.sub(r"RPC0\[127\.0\.0\.1:\d+\]", "RPC", word) for word in words[2:])
        row: Row = {"model": name, "layout": title, "flags": flags}
        try:
            report = run_server(binaries, path, words, free_ports(1)[0])
        except SituateError as error:
            print(error)
            yield row | _figures([], False, False)
            continue
        predicted = predicted_buffers(model, layout, options, NAMES, server_build(layout, options))
        buffers = compared(predicted, report, devices)
        yield row | _figures(buffers, True, layers_agree(layout, report, NAMES))


def dry_rows(binaries: Path, name: str, path: Path, endpoints: Sequence[str]) -> Iterator[Row]:
    """A row for each layout of a model that llama-fit-params counts."""
    model = read_language_model(path)
    for title, layout, options in cases(model, 16384):
        layout = rpc_layout(layout)
        if options.unified:
            continue
        words = rpc_flags(model, layout, options, endpoints)
        row: Row = {"model": name, "layout": title, "flags": " ".join(words[2:])}
        try:
            printed = ask(binaries / PROGRAM, str(path), words)
        except SituateError as error:
            print(error)
            yield row | _figures([], False, False)
            continue
        yield row | _figures(_dry_buffers(model, layout, options, printed), True, True)


def _dry_buffers(
    model: LanguageModel,
    layout: Layout,
    options: CacheOptions,
    printed: Sequence[tuple[int, int, int]],
) -> list[Buffer]:
    build = Build(pipeline=is_pipelined(layout), dry=True, converts=False)
    parts = device_memory(model, layout, options, GPUS, build=build)
    return [
        Buffer(kind, str(place), size // MIB, amount // MIB)
        for place, row in zip((*layout.order, GPUS), printed, strict=True)
        for kind, size, amount in zip(
            ("model", "KV", "compute"),
            (parts[place].weights, parts[place].cache, parts[place].compute),
            row,
            strict=True,
        )
    ]


def _figures(buffers: Sequence[Buffer], accepted: bool, agree: bool) -> Row:
    worst = max(buffers, key=lambda buffer: abs(buffer.error), default=None)
    return {
        "accepted": accepted,
        "layers_agree": agree,
        "buffers": len(buffers),
        "within_2_mib": sum(abs(buffer.error) <= GOAL_MIB for buffer in buffers),
        "largest_mib": max((buffer.measured for buffer in buffers), default=0.0),
        "worst_mib": 0.0 if worst is None else worst.error,
        "worst_buffer": "" if worst is None else f"{worst.kind} on {worst.device}",
    }


def by_model(rows: Sequence[Row]) -> Iterator[Row]:
    """Sums over the layouts of each model."""
    for name in dict.fromkeys(row["model"] for row in rows):
        own = [row for row in rows if row["model"] == name]
        worst = max(own, key=lambda row: abs(row["worst_mib"]))
        yield {
            "model": name,
            "runs": len(own),
            "accepted": sum(row["accepted"] for row in own),
            "layers_agree": sum(row["layers_agree"] for row in own),
            "buffers": sum(row["buffers"] for row in own),
            "within_2_mib": sum(row["within_2_mib"] for row in own),
            "median_worst_mib": median(abs(row["worst_mib"]) for row in own),
            "worst_mib": worst["worst_mib"],
            "worst": f"{worst['worst_buffer']}, {worst['layout']}",
        }


def targets(rows: Sequence[Row]) -> list[Target]:
    """Commands accepted, and buffers within the goal."""
    runs, buffers = len(rows), sum(row["buffers"] for row in rows)
    accepted = sum(row["accepted"] for row in rows)
    close = sum(row["within_2_mib"] for row in rows)
    return [
        Target("exported commands that llama.cpp runs", "all", f"{accepted} of {runs}",
               accepted == runs),
        Target("buffers within 2 MiB", "all", f"{close} of {buffers}", close == buffers),
    ]  # fmt: skip


def main(arguments: list[str] | None = None) -> None:
    """Run, print and record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default=",".join((REAL, *MODELS)), help="of the small ones")
    parser.add_argument("--full-size", default=",".join(FULL_SIZE), help="of the large ones")
    parser.add_argument(
        "--layouts", type=int, default=100, help="at most so many of each small one"
    )
    parser.add_argument("--build", action="store_true", help="build llama.cpp where it is missing")
    options = parser.parse_args(arguments)
    # A terminated benchmark ends its processes too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    binaries = programs(options.build)
    runs: list[Row] = []
    dry: list[Row] = []
    with rpc_servers(binaries, GPUS) as endpoints:
        for name in filter(None, options.models.split(",")):
            path = real_model() if name == REAL else random_model(name, FOLDER)
            for row in run_rows(binaries, name, path, endpoints, options.layouts):
                runs.append(row)
                print(name, row["layout"], f"{row['worst_mib']:.2f}", flush=True)
        for name in filter(None, options.full_size.split(",")):
            path = full_size_model(name, FOLDER)
            for row in dry_rows(binaries, name, path, endpoints):
                dry.append(row)
                print(name, row["layout"], f"{row['worst_mib']:.2f}", flush=True)
    tables = {
        "by model": list(by_model(runs)),
        "full size, by model": list(by_model(dry)),
        "runs": runs,
        "full size": dry,
    }
    record("homes_llamacpp", tables, targets([*runs, *dry]), options=options)


if __name__ == "__main__":
    main()
