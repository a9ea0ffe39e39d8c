"""Tables of a benchmark."""

from __future__ import annotations

from rich.console import Console

from situate.bench.best_known import BestKnown
from situate.bench.families import FAMILIES
from situate.bench.summary import row_gaps
from situate.bench.tables import comparison, families
from tests.bench.small import entry, row


def text(table) -> str:
    console = Console(width=160, markup=False)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def test_all_families_are_listed():
    shown = text(families())
    assert all(name in shown for name in FAMILIES)
    assert "dnn-partitioning/" in shown
    assert " 24 " in shown


def test_small_gaps_keep_their_digits_and_large_ones_do_not():
    known = BestKnown([entry(best=10_000, bound=8_000)])
    shown = text(comparison(row_gaps([row(value=10_001), row("etf", 25_000)], known)))
    assert "0.010 %" in shown
    assert "150 %" in shown
    assert "25.01 %" in shown


def test_each_family_and_time_limit_has_a_table():
    rows = [row(), row(time_limit=1.0), row(family="other")]
    shown = text(comparison(row_gaps(rows, BestKnown([entry(best=10)]))))
    assert [line for line in shown.splitlines() if "instance" in line] == [
        "small: 1 instance, 0.1 s", "small: 1 instance, 1 s", "other: 1 instance, 0.1 s"
    ]  # fmt: skip


def test_runs_to_which_a_method_does_not_apply_are_told_apart():
    rows = [row(), row(value=None, refused="why")]
    assert "1 of 2" in text(comparison(row_gaps(rows, BestKnown([entry(best=10)]))))


def test_names_from_files_are_only_text():
    shown = text(comparison(row_gaps([row(family="\x1b[31mred")], BestKnown())))
    assert "\x1b" not in shown
