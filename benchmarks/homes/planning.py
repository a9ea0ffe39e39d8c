"""`python -m benchmarks.homes.planning CELLS.csv [--record]`: seconds to plan for published rigs.

Each rig of one to eight cards is planned for each model of `benchmarks.homes.peers` in Q4_K_M, with
a host without limit. Eight different cards come last. Seconds are of the processor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from time import process_time

from benchmarks.homes.cells import Row, read_cells
from benchmarks.homes.peers import CARDS, MODELS
from benchmarks.homes.rigs import card_names, rig_cluster
from benchmarks.lib.record import Row as RecordRow
from benchmarks.lib.record import Target, record
from situate.data.cluster import Cluster
from situate.errors import SituateError
from situate.language.cache import CacheOptions
from situate.language.config import config_of
from situate.language.home import Home, home_of
from situate.language.planning.planner import MAX_GPUS, Planner
from situate.language.planning.workload import Workload
from situate.language.reading import model_of_config


def homes(rows: Sequence[Row]) -> Iterator[Home]:
    """One home for each set of cards of published rigs that can be planned, and eight cards."""
    rigs = {tuple(sorted(card_names(row["devices"]))): row["devices"] for row in rows}
    clusters = [rig_cluster(text, ())[0] for cards, text in rigs.items() if cards]
    for cluster in (*clusters, _eight_cards()):
        try:
            home = home_of(cluster)
        except SituateError:
            continue  # a card without published rates
        if len(home.accelerators) <= MAX_GPUS:
            yield home


def _eight_cards() -> Cluster:
    """A home of eight different cards."""
    return rig_cluster(" + ".join(CARDS), ())[0]


def planning_times(home_list: Sequence[Home]) -> Iterator[RecordRow]:
    """Seconds and gaps by model, and the longest time's number of cards."""
    for name, values in MODELS:
        model = model_of_config(config_of(values), "Q4_K_M", name)
        results = []
        for home in home_list:
            planner = Planner(model, home, CacheOptions(16384), Workload(2000, 500))
            start = process_time()
            gap = planner.plan().gap
            results.append((process_time() - start, gap or 0.0, len(home.accelerators)))
        yield {
            "model": name,
            "homes": len(results),
            "median_seconds": median(seconds for seconds, _, _ in results),
            "longest_seconds": max(results)[0],
            "cards_of_the_longest": max(results)[2],
            "median_gap": median(gap for _, gap, _ in results),
            "largest_gap": max(gap for _, gap, _ in results),
        }


def main() -> None:
    """Plan for all rigs, print and record."""
    options, table = read_cells(__doc__)
    rows = list(planning_times(list(homes(table))))
    for row in rows:
        print(*(f"{name} {value}" for name, value in row.items()))
    longest = max(row["longest_seconds"] for row in rows)
    if options.record:
        target = Target("seconds of planning, longest", "<= 30", f"{longest:.2f}", longest <= 30)
        record("home_planning", {"models": rows}, [target], options=options)


if __name__ == "__main__":
    main()
