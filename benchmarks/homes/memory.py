"""`python -m benchmarks.homes.memory CELLS.csv`: weights and caches per device, as predicted and
as published.

A row is covered if its model is identified (by its sizes, the counts of its tensor types and the
size of its file) and its flags are understood. Rows of host memory that is mapped from several
files are left out: their size depends on where one file ends and the next begins.
"""

from __future__ import annotations

import argparse
import csv
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from benchmarks.homes.models import Cell, model_of, sizes_of
from situate.language.cache import CacheOptions, layer_cache
from situate.language.hyperparameters import Hyperparameters
from situate.language.model import LanguageModel

MIB = 2**20
HOST = ("CPU", "CPU_Mapped", "CUDA_Host", "Host", "AMX")
KINDS = ("model_buffer", "kv_buffer", "rs_buffer")
GOAL_MIB = 2.0
Row = Mapping[str, str]


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
    ubatch = int(row["ubatch"] or 512)
    # ik_llama.cpp had no caches for sliding windows then.
    return CacheOptions(
        tokens, kinds[0], kinds[-1], ubatch, latent=latent, full_window="ik_llama" in row["notes"]
    )


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
    return results


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
    each = layer_cache(sizes, 0).bytes(options) / MIB
    measured = {row["measured_device"]: float(row["measured_value"]) for row in rows}
    if len(load.accelerators) < 2 or not set(load.accelerators) <= set(measured):
        return load
    split = tuple(round(measured[name] / each) for name in load.accelerators)
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


def replay(path: Path) -> tuple[list[Result], int]:
    """Predictions for a table of measurements, and the number of its rows of these kinds."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    groups = list(configurations(rows))
    return [result for group in groups for result in predictions(group)], sum(map(len, groups))


def main() -> None:
    """Print the share of rows within the goal, by kind, and the rows that miss it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cells", type=Path, metavar="CELLS.csv")
    results, total = replay(parser.parse_args().cells)
    observed = sum(result.observed for result in results)
    print(
        f"{len(results)} of {total} rows covered, {observed} of them with the split of layers "
        "among equal cards read from their caches"
    )
    for kind in KINDS:
        errors = sorted(abs(r.error) for r in results if r.row["measured_kind"] == kind)
        if errors:
            within = sum(error <= GOAL_MIB for error in errors)
            print(
                f"{kind:13} {len(errors):4} rows, {within / len(errors):7.2%} within {GOAL_MIB} "
                f"MiB, median {errors[len(errors) // 2]:.3f}, largest {errors[-1]:.2f} MiB"
            )
    for result in sorted(results, key=lambda r: -abs(r.error)):
        if abs(result.error) > GOAL_MIB:
            row = result.row
            print(
                f"{result.error:10.2f} of {row['measured_value']:>10} {row['measured_kind']} on "
                f"{row['measured_device']}: {row['model']} {row['quant'][:20]}, {row['source']}"
            )


if __name__ == "__main__":
    main()
