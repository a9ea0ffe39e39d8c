"""The page's part on both tables' cases without learning."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from research.papers import checks, markdown, published
from research.papers.published import TITLES, HierarchicalRow, PostRow
from research.papers.tables import Results

LISTS = ("heft", "heft_placed", "etf", "etf_placed")
BASELINES = ("uniform", "hill_climbing", "auto")
COMPARED = ("heft_placed", "etf_placed", *BASELINES, "learner")
"""Methods measured on one machine in one order, but for `auto`, which chooses the order."""

HEAD = (
    "", "HEFT, its order", "HEFT, learners' order", "ETF, its order", "ETF, learners' order",
    "uniform draws", "hill climbing", "best learner", "auto",
)  # fmt: skip

Content = Mapping[str, Any]


@dataclass(frozen=True)
class Compared:
    """Without learning and with it: results of the same cases.

    Attributes:
        without: rules are list scheduling's seconds, runs the baselines'.
        learnt: of the paper's table.
        learners: methods of which, in `tuned` settings, the best mean is taken.
        rows: of the published table, as far as both have measured them.
    """

    without: Results
    learnt: Results
    learners: Sequence[str]
    rows: Sequence[PostRow | HierarchicalRow]

    def value(self, row: PostRow | HierarchicalRow, column: str) -> float:
        """Seconds by a column: the mean over seeds where there are several."""
        case = _case(row)
        if column == "learner":
            return self._learner(case)
        if column in BASELINES:
            return self.without.mean(case, column, "tuned")
        return self.without.rule(case, column)

    def _learner(self, case: str) -> float:
        run = [method for method in self.learners if self.learnt.of(case, method, "tuned")]
        return min(self.learnt.mean(case, method, "tuned") for method in run)

    def ahead(self, column: str, others: Sequence[str] = ("learner",)) -> str:
        """The rows on which a column is below all others, such as `1 of 3 rows (RNNLM, 2)`; where
        they are most, those are named on which it is not."""
        won = [_title(row) for row in self.rows if self._first(row, column, others)]
        return markdown.of_rows(won, list(map(_title, self.rows)))

    def _first(self, row: PostRow | HierarchicalRow, column: str, others: Sequence[str]) -> bool:
        least = min(self.value(row, other) for other in others)
        return self.value(row, column) < least * (1 - checks.TIE)

    def line(self, row: PostRow | HierarchicalRow) -> Sequence[str]:
        """The row's cells; the least of `COMPARED` in bold."""
        values = {column: self.value(row, column) for column in (*LISTS, *COMPARED)}
        least = min(values[column] for column in COMPARED)
        cells = {column: markdown.seconds(value) for column, value in values.items()}
        for column in BASELINES:
            cells[column] = markdown.spread(self.without.spread(_case(row), column, "tuned"))
        for column in COMPARED:
            if math.isclose(values[column], least, rel_tol=checks.TIE):
                cells[column] = f"**{cells[column]}**"
        order = (*LISTS, "uniform", "hill_climbing", "learner", "auto")
        return f"{_title(row)}", *(cells[column] for column in order)


def post(heuristics: Content, table: Content) -> Mapping[str, str]:
    """Names of text/post_heuristics.md."""
    return _names(_compared("k80", heuristics, table, checks.SOFTMAX, published.POST))


def hierarchical(heuristics: Content, table: Content) -> Mapping[str, str]:
    """Names of text/hierarchical_heuristics.md."""
    methods = ("hierarchical", "post")
    return _names(_compared("k40", heuristics, table, methods, published.HIERARCHICAL))


def _compared(
    machine: str,
    heuristics: Content,
    table: Content,
    learners: Sequence[str],
    rows: Sequence[PostRow | HierarchicalRow],
) -> Compared:
    rules, runs = (
        [row for row in heuristics["tables"][name] if row["machine"] == machine]
        for name in ("rules", "runs")
    )
    learnt = Results(table["tables"]["rules"], table["tables"]["runs"])
    without = Results(rules, runs)
    both = [row for row in rows if _case(row) in without.cases and _case(row) in learnt.cases]
    return Compared(without, learnt, learners, both)


def _names(compared: Compared) -> Mapping[str, str]:
    took = max(row[f"{m}_took"] for row in compared.without.rules for m in ("heft", "etf"))
    return {
        "table": markdown.table(HEAD, map(compared.line, compared.rows)),
        "took": f"{took:.2f}",
        "heft": compared.ahead("heft_placed"),
        "etf": compared.ahead("etf_placed"),
        "learners": compared.ahead("learner", ("heft_placed", "etf_placed")),
        "uniform": compared.ahead("uniform"),
        "climbing": compared.ahead("hill_climbing"),
        "climbed": compared.ahead("learner", ("hill_climbing",)),
        "auto": compared.ahead("auto", [column for column in COMPARED if column != "auto"]),
    }


def _case(row: PostRow | HierarchicalRow) -> str:
    return f"{row.network}/{row.gpus}"


def _title(row: PostRow | HierarchicalRow) -> str:
    return f"{TITLES[row.network]}, {row.gpus}"
