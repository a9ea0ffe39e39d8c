"""Totals of the rows, against the targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from benchmarks.corpus.measure import AUTOCAST
from benchmarks.lib.record import Row, Target

CAPTURED = 0.97


def targets(rows: Sequence[Row]) -> list[Target]:
    """The targets of the rows that were tried; those that PyTorch itself cannot run do not
    count."""
    tried = [row for row in rows if row["outcome"] != "invalid"]
    return [
        target
        for make in (_captured, _remedied, _refused, _maps, _verified, _under_autocast)
        for target in make(tried)
    ]


def kinds(rows: Sequence[Row]) -> list[Row]:
    """Rows captured, refused and wrong by package and kind."""
    result: dict[tuple[str, str], Counter[str]] = {}
    for row in rows:
        result.setdefault((row["package"], row["kind"]), Counter())[row["outcome"]] += 1
    names = ("captured", "refused", "wrong", "invalid")
    return [
        {"package": package, "kind": kind, **{name: count[name] for name in names}}
        for (package, kind), count in result.items()
    ]


def _captured(rows: Sequence[Row]) -> Iterator[Target]:
    for phase in dict.fromkeys(("inference", "training", *(row["phase"] for row in rows))):
        mine = [row for row in rows if row["phase"] == phase]
        captured = sum(row["outcome"] == "captured" for row in mine)
        wrong = sum(row["outcome"] == "wrong" for row in mine)
        yield Target(
            f"captured, {phase}",
            f"{CAPTURED:.0%}",
            f"{captured} of {len(mine)}; {wrong} wrong",
            bool(mine) and captured >= CAPTURED * len(mine) and not wrong,
        )


def _remedied(rows: Sequence[Row]) -> Iterator[Target]:
    captured = sum(row["outcome"] == "captured" for row in rows)
    remedied = sum(bool(row.get("remedied")) for row in rows)
    yield Target(
        "captured, or captured once what the message says is done",
        f"{CAPTURED:.0%}",
        f"{captured} + {remedied} of {len(rows)}",
        bool(rows) and captured + remedied >= CAPTURED * len(rows),
    )


def _refused(rows: Sequence[Row]) -> Iterator[Target]:
    mine = [row for row in rows if row["outcome"] == "refused"]
    good = sum(row["names_line"] and row["names_remedy"] for row in mine)
    yield Target(
        "refusals that name line and remedy", "all", f"{good} of {len(mine)}", good == len(mine)
    )


def _maps(rows: Sequence[Row]) -> Iterator[Target]:
    mine = [row for row in rows if row.get("map") not in (None, "none")]
    good = sum(row["map"] != "beyond memory" for row in mine)
    yield Target(
        "device maps within memory, or said not to be",
        "all",
        f"{good} of {len(mine)}",
        good == len(mine),
    )


def _verified(rows: Sequence[Row]) -> Iterator[Target]:
    mine = [row for row in rows if row.get("verify")]
    count = Counter(row["verify"] for row in mine)
    apart = sum(row["verify"] == "within tolerance" for row in mine)
    yield Target(
        "placed steps on random placements, equal to the last bit",
        "all but what the page on running a plan names",
        f"{count['equal']} of {len(mine)}; {apart} within tolerance, {count['differs']} differ, "
        f"{count['refused']} refused",
        bool(mine) and count["equal"] + apart == len(mine),
    )


def _under_autocast(rows: Sequence[Row]) -> Iterator[Target]:
    """The target of models under autocast, of those that PyTorch runs both ways."""
    by_name = {(row["name"], row["phase"]): row for row in rows}
    pairs = [
        (by_name[name, phase.removesuffix(AUTOCAST)], row)
        for (name, phase), row in by_name.items()
        if phase.endswith(AUTOCAST) and (name, phase.removesuffix(AUTOCAST)) in by_name
    ]
    if pairs:
        plain, cast = (sum(map(_is_verified, side)) for side in zip(*pairs, strict=True))
        yield Target(
            "captured and verified under autocast",
            "as many as without",
            f"{cast} of {len(pairs)}; {plain} without",
            cast >= plain,
        )


def _is_verified(row: Row) -> bool:
    equal = row.get("verify") in ("equal", "within tolerance")
    return row["outcome"] == "captured" and equal
