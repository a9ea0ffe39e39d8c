"""Writes docs/papers.md: text from `text/`, every number of ours from benchmarks/results.

A section of which nothing has been measured says how to measure it.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from benchmarks.learning import wall_times
from benchmarks.lib.record import RESULTS, ROOT
from benchmarks.papers import (
    page_heuristics,
    page_hierarchical,
    page_memory,
    page_post,
    page_timeline,
)
from benchmarks.papers.tables import apart

PAGE = ROOT / "docs" / "papers.md"
TEXT = Path(__file__).parent / "text"

Content = Mapping[str, Any]
Fill = Callable[..., Mapping[str, str]]
"""From the contents of a text's files to what the names in the text stand for."""

SECTIONS: tuple[tuple[str, tuple[str, ...], Fill], ...] = (
    ("fitted", (), dict),
    ("memory_limits", ("memory_limits",), page_memory.limits),
    ("post_table", ("post_table",), page_post.table),
    ("post_heuristics", ("heuristics", "post_table"), page_heuristics.post),
    ("post_curves", ("post_table",), page_post.curves),
    ("post_timeline", ("post_timeline",), page_timeline.fill),
    (
        "hierarchical_table",
        ("hierarchical_table", "hierarchical_scale"),
        page_hierarchical.hierarchical,
    ),
    (
        "hierarchical_heuristics",
        ("heuristics", "hierarchical_table"),
        page_heuristics.hierarchical,
    ),
    ("spotlight_cifar", ("spotlight_cifar",), page_hierarchical.spotlight),
    ("colocrl", (), page_hierarchical.colocrl),
    ("wall_times", ("wall_times",), wall_times.fill),
)
"""Each section's text, the results that fill it, and what its names stand for; of several
results the first are its own."""


def main(arguments: list[str] | None = None) -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=PAGE, metavar="FILE")
    options = parser.parse_args(arguments)
    options.out.write_text(page(options.results))


def page(results: Path = RESULTS) -> str:
    """The page from the JSON files of a folder."""
    parts = [(TEXT / "introduction.md").read_text()]
    for text, names, fill in SECTIONS:
        parts.append(_section(text, [results / f"{name}.json" for name in names], fill))
    return "\n".join(parts)


def _section(name: str, paths: Sequence[Path], fill: Fill) -> str:
    text = (TEXT / f"{name}.md").read_text()
    missing = [path.stem for path in paths if not path.is_file()]
    if missing:
        heading = text.partition("\n")[0]
        return f"{heading}\nNot measured yet: `python -m {_module(missing[0])}`.\n"
    contents = [_content(path) for path in paths]
    made = contents[0]["made"] if contents else ""
    return Template(text).substitute(fill(*contents), made=made)


def _module(name: str) -> str:
    """The benchmark that writes a result."""
    folder = "papers" if (Path(__file__).parent / f"{name}.py").is_file() else "learning"
    return f"benchmarks.{folder}.{name}"


def _content(path: Path) -> Content:
    """The content of a file, with that of the one that holds its runs in `paper` settings apart."""
    content = json.loads(path.read_bytes())
    made = _made(content)
    slow = apart(path)
    if slow:
        content["tables"]["runs"] += slow["tables"]["runs"]
        made += f"; in `paper` settings {_made(slow)}"
    return {**content, "made": made}


def _made(content: Content) -> str:
    """Where the numbers come from."""
    commit, dirty, _ = content["commit"].partition("+dirty")
    samples = content["options"].get("samples")
    seeds = f", {_seeds(content)}" if "seeds" in content["options"] else ""
    return (
        f"`benchmarks/results/{content['benchmark']}.json`: commit {commit[:12]}{dirty}, "
        f"{content['date'][:10]}{seeds}" + (f", {samples:,} samples a run" if samples else "")
    )


def _seeds(content: Content) -> str:
    """The number of seeds of each method: the least and the most, where they differ."""
    runs = content["tables"].get("runs")
    if runs is None:
        return f"the best seed of {content['options']['seeds']}"
    same = ("machine", "case", "method", "settings")
    counts = Counter(tuple(run.get(column) for column in same) for run in runs).values()
    low, high = min(counts, default=0), max(counts, default=0)
    return f"{high} {'seed' if high == 1 else 'seeds'}" if low == high else f"{low} to {high} seeds"


if __name__ == "__main__":
    main()
