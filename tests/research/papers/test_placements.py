"""Placements by hand, and the figures of their computing and copying."""

from __future__ import annotations

import numpy as np
import pytest

from research.papers.cases import Case
from research.papers.claims import placements as claims
from research.papers.pages import placements as page
from research.papers.placements import by_hand, learned_placements, on_graph, shares
from research.papers.placements.placed import Wanted, place
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.simulation.decoding import decode
from tests.solvers.families import devices


def chain(*modules: str) -> Problem:
    """Ops of a second each, one after the other, of these modules; the last one goes back."""
    ops = [
        Op(f"op{j}", seconds={"*": 1.0}, module=module, phase="forward")
        for j, module in enumerate(modules[:-1])
    ]
    ops.append(Op("back", seconds={"*": 1.0}, module=modules[-1], phase="backward"))
    tensors = [Tensor(f"t{j}", j, 8, (j + 1,)) for j in range(len(modules) - 1)]
    return Problem(Graph("chain", tuple(ops), tuple(tensors)), devices(1, 1))


PROBLEM = chain("encoder.0", "encoder.1", "decoder", "encoder.0")
ORDER = np.array(PROBLEM.graph.order)


def schedule(*placement: int):
    return decode(PROBLEM, np.array(placement, np.int32), ORDER, "eager")


def test_the_encoder_is_on_one_device_and_all_else_on_the_other():
    assert by_hand.encoder_apart(PROBLEM).tolist() == [0, 0, 1, 0]


def test_load_is_by_device_and_phase():
    rows = list(shares.load(PROBLEM, schedule(0, 0, 1, 0)))
    assert [(row["forward"], row["backward"], row["update"]) for row in rows] == [
        (2.0, 1.0, 0.0),
        (1.0, 0.0, 0.0),
    ]


def test_copies_are_counted_by_kind():
    between, others = shares.copies(PROBLEM, schedule(0, 0, 1, 0))
    assert (between["transfers"], between["bytes"]) == (2, 16)
    assert between["seconds"] > 0
    assert (others["transfers"], others["seconds"]) == (0, 0.0)


def test_a_placement_on_one_device_copies_nothing():
    assert [row["transfers"] for row in shares.copies(PROBLEM, schedule(0, 0, 0, 0))] == [0, 0]


def test_modules_have_their_seconds_by_device():
    rows = {row["module"]: row for row in shares.modules(PROBLEM, schedule(0, 1, 1, 0))}
    first, second = PROBLEM.cluster.names
    assert (rows["encoder"]["seconds"], rows["decoder"]["seconds"]) == (3.0, 1.0)
    assert rows["encoder"][first] == pytest.approx(2 / 3, abs=1e-4)
    assert rows["decoder"][second] == 1


def test_a_graph_is_drawn_a_row_a_module_from_its_first_op_to_its_last():
    names, cell = on_graph.cells(PROBLEM)
    assert names == ["encoder.0", "encoder.1", "decoder"]
    rows, columns = np.divmod(cell[:3], on_graph.COLUMNS)
    assert rows.tolist() == [0, 1, 2]
    assert (np.diff(columns) > 0).all()
    assert cell[3] == -1


def test_all_figures_of_a_placement_stand_in_the_tables_and_on_the_page():
    placed = place(Wanted(Case("cifar_cnn", 2, "k80"), "expert"))
    tables = learned_placements.tables([placed])
    names = page.fill({"tables": {**tables, "placements": [summary("post"), summary("expert")]}})
    assert tables["placements"][0]["seconds"] > 0
    assert len(tables["load"]) == 3
    assert len(names["copies"].splitlines()) == 3
    assert names["split"] == "- Not placed."


def summary(placement: str, **other: object) -> dict[str, object]:
    figures = dict.fromkeys(("seconds", "least_busy_gpu", "busiest_gpu", "calls_apart"), 1.0)
    counts = dict.fromkeys(("fullest_gpu_bytes", "gpus", "transfers", "moved_bytes"), 2)
    key = {"machine": "k40", "case": "rnnlm/2", "placement": placement}
    return {**key, **figures, **counts, **other}


def blocks(share: float) -> list[dict[str, object]]:
    return [
        {"placement": "post, paper", "module": block, "seconds": 1.0, "a": share, "b": 1 - share}
        for block in claims.BLOCKS
    ]


@pytest.mark.parametrize(("share", "met"), [(0.8, "yes"), (0.5, "no")])
def test_blocks_are_on_one_gpu_where_most_of_their_seconds_are(share, met):
    tables = {"placements": [], "copies": [], "modules of k80/inception_v3/4": blocks(share)}
    (claim,) = claims.claims(tables)
    assert claim.verdict == met


@pytest.mark.parametrize(("apart", "met"), [(1.0, "yes"), (0.9, "no")])
def test_steps_are_spread_where_every_call_is(apart, met):
    row = summary("hierarchical, paper", case="nmt2/2", calls_apart=apart)
    *_, claim = claims.claims({"placements": [row], "copies": []})
    assert claim.verdict == met
