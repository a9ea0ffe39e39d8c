"""`python -m benchmarks.homes.speed CELLS.csv [--record]`: tokens/s as predicted and as published.

Predictions of a rig use factors of the parts of a pass that are fitted to all other rigs. A row is
covered if its model, its layout and, where the host has weights, its CPU are published.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.homes.memory import Load, Row, load_layout, read_load, read_options
from benchmarks.homes.models import Cell, model_of, sizes_of
from benchmarks.homes.rigs import card_names, rig_cluster
from benchmarks.lib.record import Row as RecordRow
from benchmarks.lib.record import record
from situate.errors import SituateError
from situate.language.cache import CacheOptions
from situate.language.cards import CPU_COMPUTING, PAGEABLE_UPLOAD, REPACKED_COMPUTING, find_card
from situate.language.home import Home, home_of
from situate.language.layer_seconds import Timetable
from situate.language.layout import HOST, Layout
from situate.language.model import LanguageModel
from situate.language.speed import PARTS, phase_parts

Floats = NDArray[np.float64]
FACTORS = np.exp(np.linspace(-1.2, 1.2, 25))
"""Factors of a part that a fit tries."""


@dataclass(frozen=True)
class Speed:
    """A published speed with the seconds of a token by the part of a pass.

    Attributes:
        row: the measurement.
        rig: the machine, as the source describes it.
        phase: `decode` or `prefill`.
        depth: tokens before it.
        parts: (parts,) predicted seconds a token.
        measured: seconds a token.
    """

    row: Row
    rig: str
    phase: str
    depth: int
    parts: Floats
    measured: float


def speeds(rows: Sequence[Row]) -> list[Speed]:
    """The rows with speeds that are covered."""
    about: dict[str, set[str]] = defaultdict(set)
    runs: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    fields = ("source", "model", "quant", "n_ctx", "ubatch", "cache_type", "devices", "flags")
    for row in rows:
        about[row["source"]].add(row["devices"])
        notes = re.sub(
            r"; sum of \d+ buffers|, N_KV \d+|; (sweep-bench|server timing).*", "", row["notes"]
        )
        runs[(*(row[field] for field in fields), notes)].append(row)
    return [speed for run in runs.values() for speed in _run_speeds(run, about)]


def _run_speeds(run: Sequence[Row], about: Mapping[str, set[str]]) -> list[Speed]:
    timed = [row for row in run if re.fullmatch(r"(pp|tg)\d+(@\d+)?|tg", row["measured_kind"])]
    if not timed:
        return []
    try:
        setting = _setting(run, tuple(sorted(about[run[0]["source"]])))
    except SituateError:
        return []
    if setting is None:
        return []
    model, layout, home, options, rig = setting
    return [_speed(row, run, model, layout, home, options, rig) for row in timed]


def _setting(
    run: Sequence[Row], about: tuple[str, ...]
) -> tuple[LanguageModel, Layout, Home, CacheOptions, str] | None:
    """Model, layout, home, options and rig of a run; None if one of them is not published."""
    row = run[0]
    sizes = sizes_of(row["model"])
    model = None if sizes is None else _model(row)
    if sizes is None or model is None:
        return None
    cards = card_names(row["devices"])
    load = _load(run, sizes.layers, len(cards))
    if load is None or len(load.accelerators) > len(cards):
        return None
    cluster, host = rig_cluster(row["devices"], about)
    fast = "ik_llama" in row["notes"]
    home = home_of(cluster, REPACKED_COMPUTING if fast else CPU_COMPUTING)
    # ik_llama.cpp uploads from memory that is not pinned.
    home = replace(home, upload=PAGEABLE_UPLOAD if fast else home.upload)
    ubatch = int(row["ubatch"] or 512)
    options = read_options(row) or CacheOptions(max(int(row["n_ctx"] or 0), 4096), ubatch=ubatch)
    layout = load_layout(model, load, options, row)
    if HOST in (*layout.layers, *layout.experts) and not host:
        return None
    # Machines with the same cards and CPU are one rig, whoever wrote of them.
    kinds = [card.name for name in cards for card in [find_card(name)] if card]
    return model, layout, home, options, " + ".join([*sorted(kinds), host])


def _model(row: Row) -> LanguageModel | None:
    match = re.search(r"types ([^;]*)", row["notes"])
    pairs = (entry.rsplit(":", 1) for entry in match[1].split()) if match else ()
    quant = row["quant"]
    if not match:
        label = re.search(r"I?Q\d\w*", quant) or re.search("Q.*", "Q4_K_M")
        name = label[0] if label else ""
        quant = (
            re.sub(r"_K_XL|_K$|_XL", "_K_M", name)
            .replace("Q2_K_M", "Q2_K")
            .replace("Q8_K_M", "Q8_0")
        )
    counts = tuple((name, int(count)) for name, count in pairs)
    return _identified(row["model"], quant, counts)


@cache
def _identified(name: str, quant: str, counts: tuple[tuple[str, int], ...]) -> LanguageModel | None:
    return model_of(Cell(name, quant, dict(counts)))


def _load(run: Sequence[Row], layers: int, cards: int) -> Load | None:
    row = run[0]
    offloaded = re.search(r"(\d+)/\d+ layers to GPU", row["notes"])
    if offloaded or re.search(r"ik_llama|^llama.cpp;", row["notes"]):
        buffers = [r for r in run if r["measured_kind"].endswith("_buffer")]
        if buffers:
            return read_load(buffers, layers)
        names = tuple(f"CUDA{i}" for i in range(cards))
        if offloaded and offloaded[1] != "0" and not names:
            return None
        overrides = re.findall(r"(?:-ot|--override-tensor) \"?(\S+?)=(\w+)\"?(?= |$)", row["flags"])
        count = min(int(offloaded[1]) if offloaded else 0, layers + 1)
        return Load(names if count else (), count, tuple(overrides), "ik_llama" not in row["notes"])
    if re.search(
        r"-ot|-sm row|n_cpu_moe|CPU|spill|streamed|ollama|exllama|-fit",
        f"{row['flags']} {row['devices']} {row['notes']}",
    ):
        return None
    if not cards:
        return None
    listed = re.search(r"-ngl (\d+)", row["flags"])
    count = min(int(listed[1]) if listed else layers + 1, layers + 1)
    return Load(tuple(f"CUDA{i}" for i in range(cards)), count, (), True)


def _speed(
    row: Row,
    run: Sequence[Row],
    model: LanguageModel,
    layout: Layout,
    home: Home,
    options: CacheOptions,
    rig: str,
) -> Speed:
    match = re.fullmatch(r"(pp|tg)(\d*)(?:@(\d+))?", row["measured_kind"])
    assert match is not None
    tokens, prompt = int(match[2] or 128), match[1] == "pp"
    before = 0
    if match[3] is None and not prompt:
        before = max(
            (
                int(r["measured_kind"][2:])
                for r in run
                if re.fullmatch(r"pp\d+", r["measured_kind"])
            ),
            default=0,
        )
    depth = int(match[3]) if match[3] else before
    times = Timetable(model, home, options)
    if prompt:
        ubatch = min(layout.ubatch, tokens)
        mean = depth + (tokens - ubatch) // 2
        mean = mean if match[3] or "perplexity" not in row["flags"] else 0
        parts = phase_parts(times, layout, ubatch, mean)
        seconds = np.array([parts[part] for part in PARTS]) / ubatch
    else:
        parts = phase_parts(times, layout, 1, depth + tokens // 2)
        seconds = np.array([parts[part] for part in PARTS])
    phase = "prefill" if prompt else "decode"
    return Speed(row, rig, phase, depth, seconds, 1 / float(row["measured_value"]))


def fit(cells: Sequence[Speed]) -> Floats:
    """(parts,) factors that make the sum of |log| errors small; each rig weighs the same.

    Coordinate descent: one factor after the other, with a small weight on factors near 1.
    """
    parts = np.array([cell.parts for cell in cells])
    measured = np.array([cell.measured for cell in cells])
    names = [cell.rig for cell in cells]
    weights = np.array([1 / np.sqrt(names.count(name)) for name in names])
    factors = np.ones(len(PARTS))
    for _ in range(4):
        for j in range(len(PARTS)):
            rest = parts @ factors - parts[:, j] * factors[j]
            sums = rest[:, None] + parts[:, j, None] * FACTORS
            losses = weights @ np.abs(np.log(sums / measured[:, None]))
            factors[j] = FACTORS[np.argmin(losses + 0.15 * np.abs(np.log(FACTORS)))]
    return factors


def ratios(cells: Sequence[Speed]) -> tuple[Floats, Floats]:
    """(cells,) predicted over measured tokens/s: by the table alone, and cross-validated."""
    measured = np.array([cell.measured for cell in cells])
    parts = np.array([cell.parts for cell in cells])
    table = measured / parts.sum(1)
    crossed = np.empty(len(cells))
    for rig in {cell.rig for cell in cells}:
        factors = fit([cell for cell in cells if cell.rig != rig])
        for i, cell in enumerate(cells):
            if cell.rig == rig:
                crossed[i] = cell.measured / (cell.parts @ factors)
    return table, crossed


def errors(ratio: Floats) -> Floats:
    """Relative errors of tokens/s."""
    return np.abs(ratio - 1)


def rank_correlations(cells: Sequence[Speed], ratio: Floats) -> list[float]:
    """Spearman's coefficient of each rig with three speeds or more."""
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for i, cell in enumerate(cells):
        groups[cell.rig, cell.row["source"]].append(i)
    result = []
    for members in groups.values():
        speed = np.array([1 / cells[i].measured for i in members])
        if len(set(speed)) >= 3:
            ranks = [
                np.argsort(np.argsort(v)).astype(np.float64)
                for v in (speed, speed * ratio[members])
            ]
            result.append(float(np.corrcoef(ranks[0], ranks[1]).item(1)))
    return result


def summary(cells: Sequence[Speed], ratio: Floats) -> dict[str, float]:
    """Medians and shares of one phase."""
    error = errors(ratio)
    return {
        "rows": len(cells),
        "rigs": len({cell.rig for cell in cells}),
        "median_error": float(np.median(error)),
        "within_30_percent": float(np.mean(error <= 0.3)),
        "median_ratio": float(np.median(ratio)),
        "median_spearman": float(np.median(rank_correlations(cells, ratio))),
    }


def main() -> None:
    """Print and record errors by phase, and the worst rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cells", type=Path, metavar="CELLS.csv")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    data = options.cells.read_bytes()
    every = speeds(list(csv.DictReader(data.decode().splitlines())))
    tables: dict[str, list[RecordRow]] = {"summary": []}
    for phase in ("decode", "prefill"):
        cells = [cell for cell in every if cell.phase == phase]
        table, crossed = ratios(cells)
        factors = dict(zip(PARTS, fit(cells).round(3).tolist(), strict=True))
        print(phase, factors)
        for name, ratio in (("table", table), ("cross-validated", crossed)):
            result = summary(cells, ratio)
            tables["summary"].append({"phase": phase, "constants": name, **result})
            print(f"{phase:8}{name:16}", *(f"{k} {v:.3g}" for k, v in result.items()))
        for i in np.argsort(-np.abs(np.log(crossed)))[:15]:
            cell = cells[i]
            print(
                f"  {crossed[i]:6.2f} {1 / cell.measured:8.2f} t/s at {cell.depth}: "
                f"{cell.row['model']}, {cell.rig}, {cell.row['source']}"
            )
    if options.record:
        options.cells_sha256 = hashlib.sha256(data).hexdigest()
        record("home_speed", tables, options=options)


if __name__ == "__main__":
    main()
