"""Writes research/papers.md: text from `text/`, every number of ours from research/results.

A section of which nothing has been measured says how to measure it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from benchmarks.lib.record import ROOT, read_record
from research import RESULTS
from research.pages import write_page
from research.papers import markdown
from research.papers.pages import (
    clocks,
    colocrl,
    flops,
    heuristics,
    hierarchical,
    memory,
    placements,
    planner,
    post,
    sliced,
    statistics,
    timeline,
    told_costs,
    wall_times,
)
from research.papers.tables import apart

PAGE = ROOT / "research" / "papers.md"
TEXT = Path(__file__).parent / "text"

Content = Mapping[str, Any]
Fill = Callable[..., Mapping[str, str]]
"""From the contents of a text's files to the values of the names in the text."""

SECTIONS: tuple[tuple[str, tuple[str, ...], Fill], ...] = (
    ("fitted", (), dict),
    ("memory_limits", ("memory_limits",), memory.limits),
    ("post_table", ("post_table",), post.table),
    ("told_costs", ("post_table_heavy-edge", "post_table"), told_costs.fill),
    (
        "flops",
        ("post_table_bytes", "post_table", "hierarchical_table_bytes", "hierarchical_table"),
        flops.fill,
    ),
    ("post_heuristics", ("heuristics", "post_table"), heuristics.post),
    ("post_curves", ("post_table",), post.curves),
    ("post_timeline", ("post_timeline",), timeline.fill),
    (
        "hierarchical_table",
        ("hierarchical_table", "hierarchical_scale"),
        hierarchical.hierarchical,
    ),
    ("planner_presets", ("planner_presets",), planner.presets),
    ("planner_ablation", ("planner_ablation",), planner.ablation),
    (
        "hierarchical_heuristics",
        ("heuristics", "hierarchical_table"),
        heuristics.hierarchical,
    ),
    ("spotlight_cifar", ("spotlight_cifar",), hierarchical.spotlight),
    ("spotlight_hours", ("spotlight_hours",), clocks.spotlight),
    ("colocrl", ("colocrl_table",), colocrl.fill),
    ("learned_placements", ("learned_placements",), placements.fill),
    ("wall_times", ("wall_times",), wall_times.fill),
    ("search_hours", ("search_hours",), clocks.searches),
    ("sliced_steps", ("sliced_steps",), sliced.fill),
    ("model_statistics", ("model_statistics",), statistics.fill),
)
"""Each section's text, the results that fill it, and the values of its names; of several
results the first are its own."""


COMMANDS = {
    "post_table_heavy-edge": "post_table --settings heavy-edge --out "
    "research/results/post_table_heavy-edge.json",
    "post_table_bytes": "post_table --settings bytes --out research/results/post_table_bytes.json",
    "hierarchical_table_bytes": "hierarchical_table --settings bytes --out "
    "research/results/hierarchical_table_bytes.json",
    "planner_presets": "planner.planner_presets",
    "planner_ablation": "planner.planner_ablation",
    "colocrl_table": "colocrl.colocrl_table",
    "spotlight_hours": "clocks.spotlight_hours",
    "search_hours": "clocks.search_hours",
    "wall_times": "clocks.wall_times",
    "learned_placements": "placements.learned_placements",
    "sliced_steps": "placements.sliced_steps",
    "model_statistics": "placements.model_statistics",
}
"""Modules of `research.papers` with their options, by the record that they make; the others have
its name."""


SEEDED = ("runs", "searches", "steps")
"""Tables with a row for every seed."""


def main(arguments: list[str] | None = None) -> None:
    """Write the page."""
    write_page(str(__doc__), page, PAGE, arguments)


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
        command = COMMANDS.get(missing[0], missing[0])
        return f"{heading}\nNot measured yet: `python -m research.papers.{command}`.\n"
    contents = [_content(path) for path in paths]
    made = contents[0]["made"] if contents else ""
    return Template(text).substitute(fill(*contents), made=made)


def _content(path: Path) -> Content:
    """The content of a file, with those of the ones that hold runs in other settings apart."""
    content = read_record(path)
    origin = _origin(content)
    for name, other in apart(path).items():
        content["tables"]["runs"] += other["tables"]["runs"]
        origin += f"; in {markdown.SETTINGS[name]} settings {_origin(other)}"
    return {**content, "made": origin}


def _origin(content: Content) -> str:
    """Where the numbers come from."""
    commit, dirty, _ = content["commit"].partition("+dirty")
    samples = content["options"].get("samples")
    seeds = f", {_seeds(content)}" if "seeds" in content["options"] else ""
    return (
        f"`research/results/{content['benchmark']}.json`: commit {commit[:12]}{dirty}, "
        f"{content['date'][:10]}{seeds}" + (f", {samples:,} samples a run" if samples else "")
    )


def _seeds(content: Content) -> str:
    """The number of seeds of each method: the least and the most, where they differ."""
    runs = next((rows for name, rows in content["tables"].items() if name in SEEDED), None)
    if runs is None:
        return f"the best seed of {content['options']['seeds']}"
    same = ("machine", "case", "batch", "method", "settings", "controllers", "candidate")
    counts = Counter(tuple(run.get(column) for column in same) for run in runs).values()
    low, high = min(counts, default=0), max(counts, default=0)
    return f"{high} {'seed' if high == 1 else 'seeds'}" if low == high else f"{low} to {high} seeds"


if __name__ == "__main__":
    main()
