"""Tables of research/regal.md, each from the content of a record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from research.papers import markdown
from research.regal.compared import BRED, PAPER, REFERENCE
from research.regal.published import (
    ENTROPY,
    EVALUATIONS,
    IN_PAPER_SETTINGS,
    LEAST,
    MOST,
    NO_WORSE,
    SECONDS,
    STEPS,
    set_of,
    table_1,
)

Content = dict[str, Any]

GUIDED = ("regal", "gas", "idrs")
"""Methods that draw from proposals."""


def in_paper_settings(content: Content) -> Content:
    """A comparison without weights in `tuned` settings."""
    tables = content["tables"]
    return content | {
        "tables": tables
        | {
            "methods": [row for row in tables["methods"] if not _tuned(row["method"])],
            "evaluations": [
                {column: value for column, value in row.items() if not _tuned(column)}
                for row in tables["evaluations"]
            ],
        }
    }


def _tuned(label: str) -> bool:
    """True for a method with weights or a constant of `tuned` settings."""
    return ", tuned" in label or (", " in label and "constant" in label and PAPER not in label)


def methods(content: Content) -> str:
    """Table 1."""
    rows = content["tables"]["methods"]
    graphs = len(content["tables"]["graphs"])
    head = (
        f"{graphs} graphs", "improvement, %", "the paper's", "over the same decoder, %",
        "over the best constant, %", "no worse, % of graphs", "gap to the best known, %",
        "the paper's", "seconds",
    )  # fmt: skip
    lines = [_method(row, content, graphs) for row in rows]
    for bound in content["tables"].get("bound", []):
        most = spread(bound["improvement_%"], bound["interval_%"])
        lines.append(("lower bound, at most", most, *[markdown.NONE] * (len(head) - 2)))
    beside = {row["method"].partition(",")[0] for row in rows if _as_in_the_paper(row, content)}
    for method, (improvement, gap) in table_1(content["options"]["name"]).items():
        if method not in beside:
            cells = [markdown.NONE] * len(head)
            cells[0], cells[2], cells[7] = (
                f"the paper's `{method}`",
                figure(improvement, 2),
                figure(gap, 2),
            )
            lines.append(tuple(cells))
    return markdown.table(head, lines) + "".join(map(_unfinished, _weights(content)))


def _method(row: Mapping[str, Any], content: Content, graphs: int) -> tuple[str, ...]:
    """The cells of a method, with the paper's figures if it plans as in the paper."""
    method = row["method"].partition(",")[0]
    published = table_1(content["options"]["name"]).get(method, (None, None))
    improvement, gap = published if _as_in_the_paper(row, content) else (None, None)
    return (
        _solved(row, graphs),
        spread(row["improvement_%"], row["interval_%"]),
        figure(improvement, 2),
        _over_same(row),
        _over_constant(row),
        figure(row["no_worse_%"]),
        figure(row["gap_to_best_known_%"]),
        figure(gap, 2),
        figure(row["seconds"], 3),
    )


def _as_in_the_paper(row: Mapping[str, Any], content: Content) -> bool:
    """True if a method decodes serially and has the paper's evaluations; of methods that draw from
    proposals, if they are trained in the paper's settings."""
    method, _, name = row["method"].partition(", ")
    in_paper_settings = {
        row["weights"] for row in content["tables"].get("weights", []) if row["of"] == STEPS
    }
    return (
        method != "cp_sat"
        and row["same_decoder"] == REFERENCE
        and content["options"]["evaluations"] == EVALUATIONS
        and (name in in_paper_settings if method in GUIDED else not name)
    )


def _over_constant(row: Mapping[str, Any]) -> str:
    """Over the best constant of the same settings, of other methods that draw from proposals."""
    drawn = row["method"].partition(",")[0] in GUIDED
    if not drawn or row.get("best_constant") in (None, row["method"]):
        return markdown.NONE
    return spread(row["over_constant_%"], row["over_constant_interval_%"], 2)


def _solved(row: Mapping[str, Any], graphs: int) -> str:
    """A method, and how many of the graphs it takes where that is not all."""
    solved = row.get("graphs", graphs)
    return _code(row["method"]) + (f", {solved} of the graphs" if solved < graphs else "")


def _weights(content: Content) -> list[dict[str, Any]]:
    """Rows of weights whose training has not come to its end."""
    rows = content["tables"].get("weights", [])
    return [row for row in rows if row["steps"] < row["of"]]


def _unfinished(row: Mapping[str, Any]) -> str:
    after = f"\n\n`{row['weights']}` is after {row['steps']:,} of {row['of']:,} steps of training."
    if row.get("kept", row["steps"]) == row["steps"]:
        return after
    return f"{after} Its parameters are those after {row['kept']:,}, the best in validation."


def improvements(content: Content) -> str:
    """Fig. 2 in figures: of methods that draw from proposals, over BRKGA with the same decoder."""
    whole = content["options"]["name"]
    name = set_of(whole)
    head = ("", "no worse, % of graphs", "least, %", "most, %")
    lines = [
        (_code(row["method"]), *(figure(row[c]) for c in ("no_worse_%", "least_%", "most_%")))
        for row in content["tables"]["methods"]
        if row["method"].startswith(GUIDED)
    ]
    if name in NO_WORSE and whole.endswith(IN_PAPER_SETTINGS):
        lines.append(("the paper's `regal`", *(figure(of[name]) for of in (NO_WORSE, LEAST, MOST))))
    return markdown.table(head, lines)


def evaluations(content: Content) -> str:
    """Fig. 3: per cent over BRKGA with the common budget, by evaluations."""
    rows = content["tables"]["evaluations"]
    graphs = min(content["options"]["limit_graphs"], len(content["tables"]["graphs"]))
    labels = [column.removesuffix(", %") for column in rows[0] if column.endswith(", %")]
    lines = [
        (
            f"{row['evaluations']:,}",
            *(spread(row[f"{label}, %"], row.get(f"{label}, ±")) for label in labels),
        )
        for row in rows
    ]
    return markdown.table((f"evaluations, {graphs} graphs", *map(_code, labels)), lines)


OF_ENTROPY = ("real_time", "placement")
"""The set and the choices that the paper's entropy is of."""


def entropies(content: Content) -> str:
    """Fig. 4a."""
    name = content["options"]["name"]
    head = (
        "choices", "mean, nats", "least", "most", "the paper's mean", "most frequent", "% of ops",
    )  # fmt: skip
    lines = [
        (
            row["choices"],
            *(figure(row[c], 2) for c in ("mean", "least", "most")),
            figure(ENTROPY if (set_of(name), row["choices"]) == OF_ENTROPY else None, 2),
            f"{row['usual']} of {row['levels']}",
            figure(row["usual_%"]),
        )
        for row in content["tables"]["entropy, nats"]
    ]
    return markdown.table(head, lines)


def choices(content: Content) -> str:
    """Fig. 11."""
    head = ("prefers", "priority", "% of ops", "mean weight")
    lines = [
        (row["prefers"], row["priority"], figure(row["ops_%"]), figure(row["mean_weight"], 2))
        for row in content["tables"]["choices"]
    ]
    return markdown.table(head, lines, 2)


def topologies(content: Content) -> str:
    """Fig. 12: all rewards, and the best, the middle and the worst topology by their medians."""
    rows = content["tables"]["topologies"]
    marked = {0, len(rows) // 2, len(rows) - 1}
    columns = ("mean", "least", "lower_quartile", "median", "upper_quartile", "most")
    lines = [
        (row["graph"], f"{row['rewards']:,}", *(figure(row[c], 3) for c in columns))
        for row in [*content["tables"]["all"], *(rows[i] for i in sorted(marked))]
    ]
    head = ("graph", "rewards", *(column.replace("_", " ") for column in columns))
    return markdown.table(head, lines)


def variants(content: Content) -> str:
    """Table 4 and Fig. 4b."""
    rows = content["tables"]["variants"]
    paper = any(row["paper_test_%"] is not None for row in rows)
    differs = {"rounds": "T", "proposals": "proposed"}[content["options"]["which"]]
    head = (differs, "steps", "seeds", "best reward in validation", "test, %")
    lines = [
        (
            row["variant"],
            f"{row['steps']:,}",
            str(row["seeds"]),
            f"{row['best_reward']:.4f}",
            spread(row["test_%"], row["interval_%"]),
            *((figure(row["paper_valid_%"], 2), figure(row["paper_test_%"], 2)) if paper else ()),
        )
        for row in rows
    ]
    return markdown.table(
        (*head, "the paper's validation, %", "its test, %")[: len(lines[0])], lines
    )


def trainings(content: Content) -> str:
    """The end of each training, and the test of its curve."""
    head = (
        "training", "steps", "best in validation, %", "after", "gain in the last third, %", "flat",
    )  # fmt: skip
    lines = [
        (
            _code(row["weights"]),
            f"{row['steps']:,} of {row['of']:,}",
            figure(row["best_%"], 2),
            f"{row['kept']:,}",
            markdown.NONE
            if row["gain_%"] is None
            else spread(row["gain_%"], row["gain_interval_%"], 2),
            "yes" if row["flat"] else "no",
        )
        for row in content["tables"]["trainings"]
    ]
    return markdown.table(head, lines)


def seconds(content: Content) -> str:
    """Table 3; the paper's seconds stand beside methods with the paper's decoder."""
    head = (f"{content['options']['ops']} ops", "threads", "seconds", "the paper's")
    serial = ("partition_dfs", "local_search", "brkga")
    lines = [
        (
            _code(row["method"]),
            str(row["threads"]),
            figure(row["seconds"], 3),
            f"{SECONDS[row['method']]:g}" if row["method"] in serial else markdown.NONE,
        )
        for row in content["tables"]["plans"]
    ]
    beside = {row["method"] for row in content["tables"]["plans"]} & set(serial)
    lines += [
        (f"the paper's `{method}`", markdown.NONE, markdown.NONE, f"{seconds:g}")
        for method, seconds in SECONDS.items()
        if method not in beside
    ]
    return markdown.table(head, lines)


def constants(content: Content) -> str:
    """The last rung of a search for the best constant."""
    rows = content["tables"]["constants"]
    sets = [row["set"] for row in content["tables"]["data"]]
    head = ("constant", "improvement, %", *(f"{of}, %" for of in sets), "behind the best, %")
    lines = [
        (
            row["constant"] + (", by hand" if row["by_hand"] else ""),
            figure(row["improvement_%"], 2),
            *(figure(row[f"{of}, %"], 2) for of in sets),
            spread(row["behind_the_best_%"], row["its_interval_%"], 2),
        )
        for row in rows
    ]
    return markdown.table(head, lines)


def linkages(content: Content) -> str:
    """Linkages against their baselines, graph by graph."""
    rows = content["tables"]["linkages"]
    of = {row["linkage"]: row for row in rows}
    chosen = content["tables"]["data"][0]["best_constant"]
    names = {
        "plain": "BRKGA, serial",
        "none": "no linkage",
        "constant": f"the best constant, {chosen}",
        "shuffled": "shuffled features",
    }
    baselines = [name for name in names if f"over_{name}_%" in rows[0]]
    lines = [
        (
            label,
            *(
                spread(row[f"over_{name}_%"], row[f"over_{name}_interval_%"], 2)
                for name in baselines
            ),
            figure(row["no_worse_%"]),
        )
        for label, row in of.items()
    ]
    head = (
        f"{rows[0]['graphs']} graphs, linkage",
        *(f"over {names[name]}, %" for name in baselines),
    )
    return markdown.table((*head, "no worse than none, % of graphs"), lines)


def starts(content: Content) -> str:
    """`auto` with a start and without."""
    head = ("budget", "first", "graphs", "improvement, %", "better, % of graphs", "worse")
    lines = [
        (
            row["budget"],
            _code(row["first"]),
            str(row["graphs"]),
            spread(row["improvement_%"], row["interval_%"], 2),
            figure(row["better_%"]),
            figure(row["worse_%"]),
        )
        for row in content["tables"]["budgets"]
    ]
    return markdown.table(head, lines, 2)


def in_auto(content: Content) -> str:
    """Ways to use a linkage inside `auto`, against `auto` without one."""
    head = (
        "problems", "way", "number", "over `auto` without, %", "better, % of problems", "worse",
        "over the constant, %",
    )  # fmt: skip
    lines = [
        (
            row["family"],
            row["way"],
            str(row["problems"]),
            spread(row["over_auto_%"], row["interval_%"], 2),
            figure(row["better_%"]),
            figure(row["worse_%"]),
            markdown.NONE
            if row["over_constant_%"] is None or row["way"].endswith("constant")
            else spread(row["over_constant_%"], row["over_constant_interval_%"], 2),
        )
        for row in content["tables"]["ways"]
    ]
    return markdown.table(head, lines, 2)


def figure(value: float | None, decimals: int = 1) -> str:
    """A number, or a dash where there is none."""
    return markdown.NONE if value is None else f"{value + 0.0:.{decimals}f}"


def spread(value: float, half: float | None, decimals: int = 1) -> str:
    """A mean with half the width of its interval, where that is known and not zero."""
    return figure(value, decimals) + (f" ± {half:.{decimals}f}" if half else "")


def _over_same(row: Mapping[str, Any]) -> str:
    """Over BRKGA with the same decoder, of methods that breed chromosomes."""
    if row["method"].partition(",")[0] not in BRED:
        return markdown.NONE
    return spread(row["over_same_decoder_%"], row["its_interval_%"])


def _code(label: str) -> str:
    """The label of a method, its name in code: `regal`, tuned."""
    name, comma, rest = label.partition(",")
    return f"`{name}`{comma}{rest}"
