"""Published tokens/s as seconds of the parts of a pass: the rows that are covered, by rig.

A row is covered if its model, its layout and, where the host has weights, its CPU are published.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from benchmarks.homes.cells import Row
from benchmarks.homes.memory import Load, load_layout, read_load, read_options
from benchmarks.homes.models import Cell, model_of, sizes_of
from benchmarks.homes.rigs import card_names, rig_cluster
from situate.errors import SituateError
from situate.language.cache import CacheOptions
from situate.language.cards import CPU_COMPUTING, PAGEABLE_UPLOAD, REPACKED_COMPUTING, find_card
from situate.language.home import Home, home_of
from situate.language.layer_seconds import Timetable
from situate.language.layout import HOST, Layout
from situate.language.model import LanguageModel
from situate.language.speed import PARTS, phase_parts

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Speed:
    """A published speed with the seconds of a token by the part of a pass.

    Attributes:
        row: the measurement.
        rig: the machine, as the source describes it.
        layout: where the parts of the model lie, as text.
        phase: `decode` or `prefill`.
        depth: tokens before it.
        parts: (parts,) predicted seconds a token.
        measured: seconds a token.
    """

    row: Row
    rig: str
    layout: str
    phase: str
    depth: int
    parts: Floats
    measured: float


def speeds(rows: Sequence[Row]) -> list[Speed]:
    """The rows with speeds that are covered."""
    about: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        about[row["source"]].add(row["devices"])
    return [speed for run in runs_of(rows) for speed in _run_speeds(run, about)]


def runs_of(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows of each run: those of one setting in one source."""
    runs: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    fields = ("source", "model", "quant", "n_ctx", "ubatch", "cache_type", "devices", "flags")
    for row in rows:
        notes = re.sub(
            r"; sum of \d+ buffers|, N_KV \d+|; (sweep-bench|server timing).*", "", row["notes"]
        )
        runs[(*(row[field] for field in fields), notes)].append(row)
    return list(runs.values())


def _run_speeds(run: Sequence[Row], about: Mapping[str, set[str]]) -> list[Speed]:
    timed = [row for row in run if re.fullmatch(r"(pp|tg)\d+(@\d+)?|tg", row["measured_kind"])]
    if not timed:
        return []
    setting = run_setting(run, tuple(sorted(about[run[0]["source"]])))
    if setting is None:
        return []
    model, layout, home, options, rig = setting
    return [_speed(row, run, model, layout, home, options, rig) for row in timed]


def run_setting(
    run: Sequence[Row], about: tuple[str, ...]
) -> tuple[LanguageModel, Layout, Home, CacheOptions, str] | None:
    """Model, layout, home, options and rig of a run; None if one of them is not published.

    Args:
        run: the rows of one setting.
        about: the devices of all rows of the source.
    """
    try:
        return _setting(run, about)
    except SituateError:
        return None


def _setting(
    run: Sequence[Row], about: tuple[str, ...]
) -> tuple[LanguageModel, Layout, Home, CacheOptions, str] | None:
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
    return Speed(row, rig, repr(layout), phase, depth, seconds, 1 / float(row["measured_value"]))
