"""Figures on the pages of the four seeds are those of their records, and none stands there that is
not looked up here, in `test_tuning` (tables of candidates) or in `papers`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.lib.record import RESULTS as BENCHMARKS
from benchmarks.lib.record import read_record
from research import RESULTS
from research.papers.page import TEXT
from tests.test_tuning import SCORE, page, recorded

SEEDS = ("post", "spotlight", "colocrl", "hierarchical")
FIGURE = r"\d[\d,.]*(?: to \d[\d.]*)? (?:%|points|of a per cent|minutes|updates a second)"


def score(record: str, candidate: str) -> float:
    return float(recorded(record)[candidate][SCORE])


def instead(record: str, method: str, of: str) -> str:
    """Such as `3.0 % instead of 9.6 %`."""
    tuned, other = score(record, f"{method} tuned"), score(record, f"{method} {of}")
    return f"{tuned:.1f} % instead of {other:.1f} %"


def levels() -> str:
    """Points that `tuned` lacks of the best levels, by the method that lacks most."""
    rows = recorded("tune_softmax")
    lacking = [
        row[SCORE] - min(rows[other][SCORE] for other in rows if other.startswith(f"{method} gr"))
        for method in ("post", "cross_entropy", "ppo", "policy_gradient")
        for row in [rows[f"{method} tuned"]]
    ]
    return f"{max(lacking):.1f}"


def of_post() -> list[str]:
    long, short = "tune_softmax", "tune_softmax_240"
    settings = {record: len(recorded(record)) for record in (long, short)}
    flat = "groups 96, coarser ()"
    in_long = {m: instead(long, m, flat) for m in ("cross_entropy", "ppo", "policy_gradient")}
    in_short = {m: instead(short, m, flat) for m in in_long}
    tuned = {record: f"{score(record, 'post tuned'):.1f}" for record in (long, short)}
    coarse = {record: f"{score(record, f'post {flat}'):.1f}" for record in (long, short)}
    return [
        f"Post ends {tuned[long]} % above the best of {settings[long]} settings in the mean, with "
        f"96 throughout {coarse[long]} %; cross-entropy {in_long['cross_entropy']}, "
        f"PPO {in_long['ppo']}, the policy gradient {in_long['policy_gradient']}.",
        f"Levels up to 512 or 1,024 groups are better by {levels()} of a per cent at most.",
        f"With 240 samples Post ends {tuned[short]} % above the best of {settings[short]} "
        f"settings, with 96 groups {coarse[short]} %; PPO {in_short['ppo']}, the policy gradient "
        f"{in_short['policy_gradient']}. Cross-entropy loses by it: {in_short['cross_entropy']}",
        f"that ends {tuned[short]} % above the best of {settings[short]} settings in the mean "
        f"instead of {score(short, 'post minimisations 0'):.1f} %, and cross-entropy alone "
        f"{instead(short, 'cross_entropy', 'minimisations 0')}",
    ]


def of_name(record: str) -> Path:
    """The file of a record of research or, failing that, of benchmarks."""
    paths = [folder / f"{record}.json" for folder in (RESULTS, BENCHMARKS)]
    return next(path for path in paths if path.is_file())


def table(record: str, name: str) -> list[dict[str, Any]]:
    content: dict[str, Any] = read_record(of_name(record))
    rows: list[dict[str, Any]] = content["tables"][name]
    return rows


def error(method: str) -> str:
    (row,) = (row for row in table("tune_sequence", "methods") if row["method"] == method)
    return f"The standard error of a mean is about {row['standard error']:.1f}"


def behind(method: str, candidate: str) -> float:
    """Points of `tuned` above a candidate."""
    record = "tune_sequence"
    return score(record, f"{method} tuned") - score(record, f"{method} {candidate}")


def of_spotlight() -> list[str]:
    return [f"{error('spotlight')}."]


def of_colocrl() -> list[str]:
    gained = behind("colocrl", "learning rate 0.01")
    return [f"{error('colocrl')}. A learning rate of 0.01 is better by {gained:.1f} points here."]


def of_hierarchical() -> list[str]:
    paper, tuned = table("hierarchical_scale", "searches")
    speed = {
        (row["method"], row["settings"]): row["updates_a_second"]
        for row in table("learner_cost", "sequence models, nmt2 on k80-2")
    }
    own = {settings: f"{speed['hierarchical', settings]:.1f}" for settings in ("paper", "tuned")}
    others = [value for (method, _), value in speed.items() if method != "hierarchical"]
    return [
        f"{error('hierarchical')} by these seeds",
        f"{paper['cpu_minutes']:.1f} minutes with the mixture and "
        f"{tuned['cpu_minutes']:.1f} in `tuned`",
        f"On two cores that is {paper['wall_minutes']:.1f} and {tuned['wall_minutes']:.1f} minutes",
        f"that makes {own['paper']} updates a second, where `tuned` makes {own['tuned']} and the "
        f"other sequence models on 256 groups {min(others):.1f} to {max(others):.1f}",
    ]


SENTENCES: Mapping[str, Callable[[], list[str]]] = {
    "post": of_post,
    "spotlight": of_spotlight,
    "colocrl": of_colocrl,
    "hierarchical": of_hierarchical,
}


@pytest.mark.parametrize("seed", SEEDS)
def test_sentences_with_figures_are_what_the_records_say(seed: str) -> None:
    text = page(seed)
    assert [sentence for sentence in SENTENCES[seed]() if sentence not in text] == []


@pytest.mark.parametrize("seed", SEEDS)
def test_no_figure_stands_outside_of_tables_that_is_not_looked_up(seed: str) -> None:
    lines = page(seed).splitlines()
    text = "\n".join(line for line in lines if not line.startswith("|"))
    for sentence in SENTENCES[seed]():
        text = text.replace(sentence, "")
    assert re.findall(FIGURE, text) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_command_that_is_named_with_a_commit_was_recorded_at_it(seed: str) -> None:
    cited = re.findall(
        r"`python -m research\.learning\.(\w+)( --samples \d+)?`[^`]*?commit (\w{7})", page(seed)
    )
    for name, samples, commit in cited:
        record = f"{name}{samples.replace(' --samples ', '_')}"
        assert read_record(RESULTS / f"{record}.json")["commit"].startswith(commit)


def test_the_text_of_the_papers_page_has_no_per_cents_but_those_that_records_fill_in() -> None:
    written = {
        path.name: result
        for path in sorted(TEXT.glob("*.md"))
        if (result := re.findall(FIGURE, path.read_text()))
    }
    assert written == {}
