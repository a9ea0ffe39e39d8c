"""`python -m benchmarks.homes.memory CELLS.csv`: weights and caches per device, as predicted and
as published.

A row is covered if its model is identified (by its sizes, the counts of its tensor types and the
size of its file) and its flags are understood. Rows of host memory that is mapped from several
files are left out: their size depends on where one file ends and the next begins.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import get_args

from benchmarks.homes.cells import Row, read_cells
from benchmarks.homes.models import Cell, model_of, sizes_of
from benchmarks.lib.record import record
from situate.errors import SituateError
from situate.language.cache import CacheOptions, layer_cache
from situate.language.compute_buffers import F32, Build, Engine
from situate.language.hyperparameters import Hyperparameters
from situate.language.layout import HOST as HOST_PLACE
from situate.language.layout import Layout
from situate.language.memory import device_memory
from situate.language.model import LanguageModel

MIB = 2**20
HOST = ("CPU", "CPU_Mapped", "CUDA_Host", "Host", "AMX")
KINDS = ("model_buffer", "kv_buffer", "rs_buffer", "compute_buffer", "output_buffer")
TOTAL = "total"
GOAL_MIB = 2.0


@dataclass(frozen=True)
class Load:
    """A model as it is loaded.

    Attributes:
        accelerators: names, in llama.cpp's order.
        on_accelerators: layers on them, with the output as one of them (`-ngl`).
        overrides: patterns of tensors' names, with a device (`-ot`); the first that fits counts.
        output_first: the output goes to an accelerator before any layer, as in llama.cpp since
            2025; in ik_llama.cpp it goes there after all layers.
        split: layers of each accelerator; empty for equal shares.
    """

    accelerators: tuple[str, ...]
    on_accelerators: int
    overrides: tuple[tuple[str, str], ...]
    output_first: bool
    split: tuple[int, ...] = ()

    def devices(self, layers: int) -> list[str]:
        """The device of each layer and of the output behind them.

        Layers go to accelerators from the last one on. With equal shares, layer i of `count` goes
        to the accelerator i * accelerators // count, as in llama.cpp.
        """
        count = min(self.on_accelerators, layers + 1)
        host = layers - max(count - 1, 0) if self.output_first else max(layers - count, 0)
        names = self.accelerators
        if self.split:
            places = [name for name, n in zip(names, self.split, strict=True) for _ in range(n)]
        else:
            places = [names[i * len(names) // count] for i in range(layers - host)]
        output = names[-1] if count > (0 if self.output_first else layers) else "host"
        return ["host"] * host + places + [output]


def weights_by_device(model: LanguageModel, load: Load) -> Counter[str]:
    """Bytes of weights by device: `host`, `CPU` for tensors that flags send there, accelerators.

    A tied embedding is in host memory and beside the output.
    """
    places = load.devices(model.sizes.layers)
    sums: Counter[str] = Counter()
    for weight in model.weights:
        if weight.role == "embedding":
            place = "host"
        else:
            place = places[-1 if weight.layer is None else weight.layer]
        sums[_override(weight.name, load, place)] += weight.size
    if model.tied and places[-1] != "host":
        sums[places[-1]] += sum(w.size for w in model.embedding)
    return sums


def _override(name: str, load: Load, place: str) -> str:
    return next((device for part, device in load.overrides if re.search(part, name)), place)


def cache_by_device(sizes: Hyperparameters, load: Load, options: CacheOptions) -> Counter[str]:
    """Bytes of the cache by device; a layer's cache is where the layer is."""
    sums: Counter[str] = Counter()
    for i, place in enumerate(load.devices(sizes.layers)[:-1]):
        sums[place] += layer_cache(sizes, i).bytes(options)
    return sums


def load_layout(model: LanguageModel, load: Load, options: CacheOptions, row: Row) -> Layout:
    """The load as a layout; a layer is where its attention is, and its experts may be elsewhere."""
    index = {name: i for i, name in enumerate(load.accelerators)}
    places = load.devices(model.sizes.layers)
    experts = [
        next((_override(w.name, load, place) for w in layer.weights if w.role == "experts"), place)
        for layer, place in zip(model.layers, places, strict=False)
    ]
    layers = tuple(index.get(place, HOST_PLACE) for place in places)
    expert_places = tuple(index.get(place, HOST_PLACE) for place in experts)
    moved = tuple(
        (weight.name, index.get(there, HOST_PLACE))
        for layer, place, other in zip(model.layers, places, experts, strict=False)
        for weight in layer.weights
        for there in [_override(weight.name, load, place)]
        if there != (other if weight.role == "experts" else place)
    )
    return Layout(
        tuple(range(len(index))) if load.on_accelerators else (),
        layers[:-1],
        expert_places,
        layers[-1],
        split="tensor" if re.search(r"-sm (tensor|graph)", row["flags"]) else "layer",
        ubatch=options.ubatch,
        op_offload=_offloads(model, expert_places, options, row),
        moved=moved,
    )


def _offloads(
    model: LanguageModel, experts: Sequence[int], options: CacheOptions, row: Row
) -> bool:
    """False where ik_llama.cpp computes with interleaved weights on the CPU: in batches of no more
    than 32 tokens an expert."""
    e = model.sizes.experts
    if "ik_llama" not in row["notes"] or e is None:
        return True
    host = [
        weight
        for layer, place in zip(model.layers, experts, strict=True)
        for weight in layer.weights
        if weight.role == "experts" and place == HOST_PLACE
    ]
    repacked = re.search(r"-rtr|--run-time-repack", row["flags"])
    slow = repacked or all(re.search(r"_R\d+$", weight.type.name) for weight in host)
    return not (slow and options.ubatch <= 32 * e.count // e.used)


# Rows of the table, by configuration.
def configurations(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """The rows of each run, without the words that split host memory off."""
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    fields = ("source", "model", "quant", "n_ctx", "ubatch", "cache_type", "devices", "flags")
    for row in rows:
        if row["measured_kind"] in KINDS:
            notes = re.sub(r"; sum of \d+ buffers", "", row["notes"])
            groups[(*(row[field] for field in fields), notes)].append(row)
    yield from groups.values()


def _cell(row: Row) -> Cell:
    match = re.search(r"types ([^;]*)", row["notes"])
    pairs = (entry.rsplit(":", 1) for entry in match[1].split()) if match else ()
    return Cell(row["model"], row["quant"], {name: int(count) for name, count in pairs})


@cache
def _model(model: str, quant: str, counts: tuple[tuple[str, int], ...]) -> LanguageModel | None:
    return model_of(Cell(model, quant, dict(counts)))


def read_load(rows: Sequence[Row], layers: int) -> Load | None:
    """The flags of a run; None if they are not understood."""
    row, flags = rows[0], rows[0]["flags"]
    names = sorted({r["measured_device"] for r in rows} - set(HOST))
    offloaded = re.search(r"(\d+)/\d+ layers to GPU", row["notes"])
    count = int(offloaded[1]) if offloaded else 0
    if bool(count) != bool(names) or re.search(r"-fit|ollama", flags):
        return None
    if names and not re.search(r" -\w", flags):
        return None
    overrides = re.findall(r"(?:-ot|--override-tensor) \"?(\S+?)=(\w+)\"?(?= |$)", flags)
    return Load(
        tuple(names),
        min(count, layers + 1),
        tuple(overrides),
        "ik_llama.cpp" not in row["notes"],
    )


def read_options(row: Row) -> CacheOptions | None:
    """The cache's options; None if the row does not say them."""
    context = re.search(r"(?:-c|--ctx-size) (\d+)", row["flags"])
    tokens = int(row["n_ctx"] or (context[1] if context else 0))
    if not tokens:
        return None
    if "llama-perplexity" in row["flags"]:
        # As many sequences at once as fit in a batch.
        batch = re.search(r" -b (\d+)", row["flags"])
        tokens *= max(int(batch[1] if batch else 2048) // tokens, 1)
    kinds = row["cache_type"].removeprefix("MLA ").split("/")
    latent = row["cache_type"].startswith("MLA")
    listed = re.search(r"(?:-ub|--ubatch-size) (\d+)", row["flags"])
    ubatch = int(row["ubatch"] or (listed[1] if listed else 512))
    # ik_llama.cpp had no caches for sliding windows then.
    try:
        return CacheOptions(
            tokens,
            kinds[0],
            kinds[-1],
            min(ubatch, tokens),
            latent=latent,
            full_window="ik_llama" in row["notes"],
        )
    except SituateError:
        return None


@dataclass(frozen=True)
class Result:
    """A row with its prediction in MiB.

    Attributes:
        observed: the layers of each accelerator were read from the rows of their caches.
    """

    row: Row
    predicted: float
    observed: bool

    @property
    def error(self) -> float:
        """MiB by which the prediction is too high."""
        return self.predicted - float(self.row["measured_value"])


def predictions(rows: Sequence[Row]) -> list[Result]:
    """The rows of a run that can be predicted, with their predictions."""
    sizes = sizes_of(rows[0]["model"])
    load = None if sizes is None else read_load(rows, sizes.layers)
    if sizes is None or load is None:
        return []
    results = []
    options = read_options(rows[0])
    caches = [row for row in rows if row["measured_kind"] == "kv_buffer"]
    if options is not None and caches:
        load = _observed_split(sizes, load, options, caches)
        results += _compare(caches, cache_by_device(sizes, load, options), bool(load.split))
    cell = _cell(rows[0])
    model = _model(cell.model, cell.quant, tuple(cell.counts.items()))
    if model is not None:
        weights = [row for row in rows if row["measured_kind"] == "model_buffer"]
        results += _compare(_unmapped(weights), weights_by_device(model, load), bool(load.split))
        if options is not None:
            results += _buffers(rows, model, load, options)
    return results + _totals(results)


def build_of(row: Row) -> Build:
    """The engine of a run, and its options of attention."""
    notes = row["notes"]
    block = re.search(r"-amb (\d+)", row["flags"]) or re.search(r"amb=(\d+)", notes)
    scores = int(block[1]) * MIB if block else 2**60
    engine: Engine = "ik_llama.cpp" if "ik_llama" in notes else "llama.cpp"
    return Build(engine, "fa=1" in notes, F32, False, scores)


def _buffers(
    rows: Sequence[Row], model: LanguageModel, load: Load, options: CacheOptions
) -> list[Result]:
    """Buffers of activations and of outputs; those of host memory are compared as a sum."""
    layout = load_layout(model, load, options, rows[0])
    names = (*load.accelerators, "host")
    build = build_of(rows[0])
    parts = device_memory(model, layout, options, len(load.accelerators), build=build)
    results = []
    for kind, sizes in (
        ("compute_buffer", [part.compute for part in parts]),
        ("output_buffer", [part.output for part in parts]),
    ):
        measured: dict[str, float] = defaultdict(float)
        members = {}
        for row in rows:
            if row["measured_kind"] == kind:
                device = row["measured_device"]
                name = "host" if device in HOST else device
                measured[name] += float(row["measured_value"])
                members[name] = row
        for name, row in members.items():
            total = {**row, "measured_value": str(measured[name])}
            size = sizes[names.index(name)] / MIB
            results.append(Result(total, size, bool(load.split)))
    return results


def _totals(results: Sequence[Result]) -> list[Result]:
    """The sums of weights, cache and activations of accelerators of which all three are there."""
    by_device: dict[str, dict[str, Result]] = defaultdict(dict)
    for result in results:
        by_device[result.row["measured_device"]][result.row["measured_kind"]] = result
    totals = []
    for device, parts in by_device.items():
        if device not in HOST and {"model_buffer", "kv_buffer", "compute_buffer"} <= set(parts):
            measured = sum(float(part.row["measured_value"]) for part in parts.values())
            first = next(iter(parts.values()))
            row = {**first.row, "measured_kind": TOTAL, "measured_value": str(measured)}
            predicted = sum(part.predicted for part in parts.values())
            totals.append(Result(row, predicted, first.observed))
    return totals


def _unmapped(rows: Sequence[Row]) -> list[Row]:
    """Rows without host memory that is mapped from several files or beside overrides, and without
    the matrices that a CPU backend stores in a form of its own."""
    mixed = any(row["measured_device"] == "AMX" for row in rows)
    return [
        row
        for row in rows
        if not re.search(r"sum of \d+ buffers", row["notes"])
        and not (row["measured_device"] == "CPU_Mapped" and re.search("-ot ", row["flags"]))
        and not (mixed and row["measured_device"] in HOST)
    ]


def _observed_split(
    sizes: Hyperparameters, load: Load, options: CacheOptions, rows: Sequence[Row]
) -> Load:
    """The load with the layers that each of several accelerators has by the size of its cache.

    Cards of one kind have nearly the same free memory, and whose is a little larger is not
    published. A layer's cache is the unit, so a wrong size of it would still show.
    """
    layer = layer_cache(sizes, 0).bytes(options) / MIB
    measured = {row["measured_device"]: float(row["measured_value"]) for row in rows}
    if len(load.accelerators) < 2 or not set(load.accelerators) <= set(measured):
        return load
    split = tuple(round(measured[name] / layer) for name in load.accelerators)
    if sum(split) != sum(place != "host" for place in load.devices(sizes.layers)[:-1]):
        return load
    return replace(load, split=split)


def _compare(rows: Sequence[Row], predicted: Counter[str], observed: bool) -> list[Result]:
    """Rows of accelerators one by one; rows of host memory one by one where both are there, else
    their sum."""
    results = []
    host = [row for row in rows if row["measured_device"] in HOST]
    for row in rows:
        if row["measured_device"] not in HOST:
            size = predicted[row["measured_device"]]
            results.append(Result(row, size / MIB, observed))
    if len(host) == 1:
        total = predicted["host"] + predicted["CPU"]
        results.append(Result(host[0], total / MIB, observed))
    elif len(host) == 2:
        names = {row["measured_device"]: row for row in host}
        if "CPU" in names and predicted["CPU"]:
            other = next(row for row in host if row is not names["CPU"])
            results.append(Result(names["CPU"], predicted["CPU"] / MIB, observed))
            results.append(Result(other, predicted["host"] / MIB, observed))
    return results


def replay(rows: Iterable[Row]) -> tuple[list[Result], int]:
    """Predictions for a table of measurements, and the number of its rows of these kinds."""
    groups = list(configurations(rows))
    return [result for group in groups for result in predictions(group)], sum(map(len, groups))


def main() -> None:
    """Print the share of rows within the goal, by kind, and the rows that miss it."""
    options, table = read_cells(__doc__)
    results, total = replay(table)
    observed = sum(result.observed for result in results)
    print(
        f"{len(results)} of {total} rows covered, {observed} of them with the split of layers "
        "among equal cards read from their caches"
    )
    for figures in summary(results):
        print(*(f"{v:.4g}" if isinstance(v, float) else v for v in figures.values()))
    worst = sorted(results, key=lambda r: -abs(r.error))
    limits = {"compute_buffer": 100.0, TOTAL: 100.0}
    for result in worst:
        row = result.row
        if abs(result.error) > limits.get(row["measured_kind"], GOAL_MIB):
            print(
                f"{result.error:10.2f} of {float(row['measured_value']):10.2f} "
                f"{row['measured_kind']} on {row['measured_device']}: {row['model']} "
                f"{row['quant'][:20]}, {row['source']}"
            )
    if options.record:
        record("home_memory", {"summary": summary(results)}, options=options)


def summary(results: Sequence[Result]) -> list[dict[str, str | int | float]]:
    """A row for each kind, and for each engine: shares of rows within a number of MiB."""
    table: list[dict[str, str | int | float]] = []
    for kind, engine in product((*KINDS, TOTAL), ("all", *get_args(Engine))):
        of_kind = [
            r
            for r in results
            if r.row["measured_kind"] == kind and engine in ("all", build_of(r.row).engine)
        ]
        errors = sorted(abs(r.error) for r in of_kind)
        if errors:
            n = len(errors)
            table.append(
                {
                    "kind": kind,
                    "engine": engine,
                    "rows": n,
                    "within_2_mib": sum(error <= GOAL_MIB for error in errors) / n,
                    "within_100_mib": sum(error <= 100 for error in errors) / n,
                    "median_mib": errors[n // 2],
                    "most_too_low_mib": -min(r.error for r in of_kind),
                    "most_too_high_mib": max(r.error for r in of_kind),
                }
            )
    return table


if __name__ == "__main__":
    main()
