"""Claims of Post, ColocRL and the Hierarchical Planner on the look of placements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from research.papers import markdown
from research.papers.claims import claim
from research.papers.claims.claim import Claim

MOSTLY, ALONE = 0.75, 0.9
"""Fractions of a block's, and of an encoder's, seconds on the GPU that it is said to be on."""

EVEN = 0.75
"""Seconds of the least busy GPU over the busiest's where computation is balanced."""

BLOCKS = ("mixed_5b", "mixed_5c", "mixed_5d", "mixed_6a")
KEYS = ("placement", "module", "seconds")

Tables = Mapping[str, Sequence[Mapping[str, Any]]]


def claims(tables: Tables) -> list[Claim]:
    """Those that the recorded placements bear on, of `paper` settings."""
    return [
        *_blocks(tables),
        *_encoder(tables),
        *_balance(tables),
        *_copies(tables),
        *_steps(tables),
    ]


def _shares(tables: Tables, case: str, placement: str) -> dict[str, dict[str, float]]:
    """By module, the fraction of its seconds on each device; empty if it was not placed."""
    rows = tables.get(f"modules of {case}", ())
    return {
        row["module"]: {name: value for name, value in row.items() if name not in KEYS}
        for row in rows
        if row["placement"] == placement
    }


def _row(table: Sequence[Mapping[str, Any]], case: str, **wanted: str) -> Mapping[str, Any] | None:
    machine, name = case.split("/", 1)
    key = {"machine": machine, "case": name, **wanted}
    return next((row for row in table if key.items() <= row.items()), None)


def _blocks(tables: Tables) -> Iterator[Claim]:
    shares = _shares(tables, "k80/inception_v3/4", "post, paper")
    if shares:
        most = {block: max(shares[block].values()) for block in BLOCKS}
        yield claim.on_all(
            "Post, Fig. 3a: of the first four blocks only one branch goes to another GPU",
            f"{100 * MOSTLY:.0f} % of the seconds of each of these on one GPU, Post, `paper`",
            {block: share >= MOSTLY for block, share in most.items()},
            f"{markdown.percent(min(most.values()))} at least",
        )


def _encoder(tables: Tables) -> Iterator[Claim]:
    shares = _shares(tables, "k80/nmt2/2", "post, paper")
    if shares:
        encoder, decoder = (
            max(shares[part].items(), key=lambda item: item[1]) for part in ("encoder", "decoder")
        )
        apart = encoder[0] != decoder[0] and min(encoder[1], decoder[1]) >= ALONE
        yield Claim(
            "Post, Fig. 3d: one GPU is dedicated for encoding tasks and another one for decoding "
            "tasks",
            f"{100 * ALONE:.0f} % of the seconds of each on a GPU of its own, Post, `paper`",
            f"encoder: {markdown.percent(encoder[1])} on {encoder[0]}, decoder: "
            f"{markdown.percent(decoder[1])} on {decoder[0]}",
            claim.verdict(apart),
        )


def _balance(tables: Tables) -> Iterator[Claim]:
    row = _row(tables["placements"], "k40/nmt2/2", placement="hierarchical, paper")
    if row:
        even = row["least_busy_gpu"] / row["busiest_gpu"]
        yield Claim(
            "the planner learns for NMT to balance computation across devices",
            f"the least busy GPU at least {100 * EVEN:.0f} % as busy as the busiest, the planner, "
            "`paper`",
            markdown.percent(even),
            claim.verdict(even >= EVEN),
        )


def _copies(tables: Tables) -> Iterator[Claim]:
    result = {
        name: sum(
            row["seconds"]
            for row in tables["copies"]
            if (row["machine"], row["case"], row["placement"]) == ("k80", "inception_v3/4", name)
        )
        for name in ("colocrl, paper", "synchronous tower")
    }
    if all(_row(tables["copies"], "k80/inception_v3/4", placement=name) for name in result):
        own, other = result.values()
        yield Claim(
            "for Inception-V3 the planner learns to mitigate the time spent on inter-device memory "
            "copy",
            "fewer seconds of copies than the synchronous tower's sliced step, ColocRL, `paper`",
            f"{own:.3f} s, the tower {other:.3f} s",
            "unlike",
        )


def _steps(tables: Tables) -> Iterator[Claim]:
    row = _row(tables["placements"], "k40/nmt2/2", placement="hierarchical, paper")
    if row:
        yield Claim(
            "the planner places each step of an unrolled LSTM layer across multiple GPUs",
            "every call of a module of NMT that is called more than once on several devices, the "
            "planner, `paper`",
            markdown.percent(row["calls_apart"]),
            claim.verdict(row["calls_apart"] == 1),
        )
    other = _row(tables["placements"], "k40/rnnlm/2", placement="colocrl, paper")
    if other:
        yield Claim(
            "ColocRL colocates all operations in a step",
            "no call of a cell of RNNLM on several devices, ColocRL, `paper`",
            markdown.percent(other["calls_apart"]),
            "by construction",
        )
