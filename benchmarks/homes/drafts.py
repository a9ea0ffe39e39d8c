"""`python -m benchmarks.homes.drafts CELLS.csv [--record]`: the gain of guesses, as published.

Runs with a prediction head of the model's own (`draft-mtp`) beside the same runs without guesses. A
guess is priced as one layer and the output. Acceptance is not published, so several are tried.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import median

from benchmarks.homes.cells import Row, read_cells
from benchmarks.homes.speed_cells import run_setting, runs_of
from benchmarks.lib.record import Row as RecordRow
from benchmarks.lib.record import record
from situate.language.layer_seconds import Timetable
from situate.language.planning.workload import Drafting
from situate.language.speed import decode_seconds

TOKENS, DEPTH = 3, 64
"""Guesses a pass, llama.cpp's default, and tokens before it."""

ACCEPTANCES = (0.6, 0.7, 0.8)


def gains(rows: Sequence[Row]) -> Iterator[tuple[float, dict[float, float]]]:
    """The published gain of each run, and the predicted one by acceptance."""
    about: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        about[row["source"]].add(row["devices"])
    for run in runs_of(rows):
        speeds = {row["measured_kind"]: float(row["measured_value"]) for row in run}
        if not {"tg", "tg_spec"} <= speeds.keys():
            continue
        setting = run_setting(run, tuple(sorted(about[run[0]["source"]])))
        if setting is None:
            continue
        model, layout, home, options, _ = setting
        times, device = Timetable(model, home, options), layout.order[0]
        one, check = (decode_seconds(times, layout, DEPTH, n) for n in (1, 1 + TOKENS))
        table = times.seconds(1, DEPTH)
        guess = float(table.output[device] + table.whole[:, device].mean())
        predicted = {}
        for acceptance in ACCEPTANCES:
            head = Drafting("", "", "", 0, 0, TOKENS, acceptance)
            predicted[acceptance] = one * head.tokens_a_pass / (check + TOKENS * guess)
        yield speeds["tg_spec"] / speeds["tg"], predicted


def main() -> None:
    """Print and record medians by acceptance."""
    options, table = read_cells(__doc__)
    pairs = list(gains(table))
    rows: list[RecordRow] = [
        {
            "acceptance": acceptance,
            "runs": len(pairs),
            "published_gain": median(gain for gain, _ in pairs),
            "predicted_gain": median(by[acceptance] for _, by in pairs),
            "median_error": median(abs(by[acceptance] / gain - 1) for gain, by in pairs),
        }
        for acceptance in ACCEPTANCES
    ]
    for row in rows:
        print(*(f"{name} {value:.3g}" for name, value in row.items()))
    if options.record:
        record("home_drafts", {"gains": rows}, options=options)


if __name__ == "__main__":
    main()
