"""Plans survive their file, and refuse other problems than their own."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from situate.data.cluster import Cluster
from situate.data.costs import Costs, MeasuredDevice, Timing
from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.data.slices import Slices
from situate.data.update_rule import UpdateRule
from situate.errors import PlanError, SituateError
from situate.results.plan import Plan
from situate.solvers import solve
from tests.oracle.problems import random_problem
from tests.solvers.families import OBJECTIVES, RULES, apart, chain, devices, layered
from tests.solvers.recomputing import layered_step


def _problem(**changes: Any) -> Problem:
    return Problem(layered(3, 3, 1), devices(1, 2), **changes)


def _plan(problem: Problem | None = None) -> Plan:
    return solve(problem or _problem(), "heft").plan


def _rejected(match: str, read: Any) -> None:
    """As a PlanError of one line."""
    with pytest.raises(PlanError, match=match) as error:
        read()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("seed", range(20))
def test_a_file_holds_the_schedule_to_the_last_bit(seed: int, tmp_path: Path) -> None:
    drawn = random_problem(seed)
    for rules in RULES:
        for objective in OBJECTIVES:
            problem = Problem(drawn.graph, drawn.cluster, objective, rules)
            result = solve(problem, time_limit=None, evaluations=50, seed=seed)
            result.plan.write(tmp_path / "plan.json")
            plan = Plan.read(tmp_path / "plan.json")
            assert plan == result.plan
            schedule = plan.schedule(problem)
            for name in ("placement", "start", "end", "transfer_end", "peak"):
                assert np.array_equal(getattr(schedule, name), getattr(result.schedule, name))
            assert schedule.makespan == result.makespan
            assert schedule.decoder == result.decoder


def test_names_with_quotes_newlines_and_escapes_survive(tmp_path: Path) -> None:
    names = ['"', "\n", "\x1b[31m", "</script>", "\\", "é€😀", "a b"]
    problem = Problem(Graph("g", tuple(Op(name, seconds={"*": 1.0}) for name in names)), devices(1))
    _plan(problem).write(tmp_path / "plan.json")
    plan = Plan.read(tmp_path / "plan.json")
    assert sorted(plan.placement) == sorted(names)
    assert plan.schedule(problem).makespan == len(names)


def test_a_seed_out_of_an_array_is_written_as_a_number(tmp_path: Path) -> None:
    [seed] = np.array([3])
    solve(_problem(), "random", evaluations=np.int64(9), seed=seed).plan.write(
        tmp_path / "plan.json"
    )
    assert Plan.read(tmp_path / "plan.json").seed == 3


def test_a_plan_for_another_graph_is_refused() -> None:
    other = Problem(chain(9), devices(1, 2))
    _rejected(
        "'small' is not what the plan was made for: its model or inputs have changed",
        lambda: _plan().schedule(other),
    )


def test_a_plan_of_values_that_were_drawn_says_why_planning_again_does_not_help() -> None:
    warning = "the step and its plan hold for the values of input 1 alone: step.py:13 depends on it"
    other = Problem(replace(chain(9), warnings=(warning,)), devices(1, 2))
    _rejected(
        "if they are drawn, planning again does not help: give them, from a file or of a torch.Gen",
        lambda: _plan().schedule(other),
    )


def test_a_plan_for_another_optimizer_names_both() -> None:
    adamw, sgd = (
        Problem(replace(graph, optimizer=rule), devices(1, 2))
        for graph, rule in ((layered(3, 3, 1), "adamw"), (chain(9), "sgd"))
    )
    message = (
        r"^the plan is for optimizer adamw, the one given is sgd: give adamw \(--optimizer, "
        r"optimizer=\), or plan with --optimizer sgd$"
    )
    _rejected(message, lambda: _plan(adamw).schedule(sgd))


def test_a_plan_for_an_onnx_file_of_other_sizes_names_the_option() -> None:
    other = Problem(replace(chain(9), source="onnx"), devices(1, 2))
    _rejected("its model has changed, or --dim gives other sizes", lambda: _plan().schedule(other))


def test_a_plan_for_another_cluster_is_refused() -> None:
    other = replace(_problem().cluster, name="other", synchronisation=1.0)
    problem = Problem(_problem().graph, other)
    _rejected(
        "was made for cluster 'small', not for this 'other'", lambda: _plan().schedule(problem)
    )


def test_a_plan_under_other_rules_is_refused() -> None:
    problem = _problem(rules="regal")
    _rejected(
        "was made for rules 'situate', not for this 'regal'", lambda: _plan().schedule(problem)
    )


def _measured(seconds: float) -> Costs:
    timing = Timing(seconds, seconds, seconds, 1)
    return Costs("here", "today", {}, [MeasuredDevice("d0", "any", seconds={"op": timing})])


def test_a_plan_with_other_costs_is_refused() -> None:
    plan = _plan(_problem(costs=_measured(1.0)))
    plan.schedule(_problem(costs=_measured(1.0)))
    given = {"other measured costs": _measured(2.0), "measured costs, and none are given": None}
    for what, costs in given.items():
        problem = _problem(costs=costs)
        message = rf"made with {what}: give those \(--costs, costs=\) or plan again"
        _rejected(message, lambda problem=problem: plan.schedule(problem))
    problem = _problem(costs=_measured(1.0))
    _rejected("with no measured costs: leave them out", lambda: _plan().schedule(problem))


def test_the_optimizer_is_that_of_the_graph(tmp_path: Path) -> None:
    graph = replace(layered(3, 3, 1), optimizer="adamw:clip=0.5")
    plan = solve(Problem(graph, devices(1, 2)), "heft").plan
    plan.write(tmp_path / "plan.json")
    read = Plan.read(tmp_path / "plan.json")
    assert read.optimizer == "adamw:clip=0.5"
    assert read.update_rule == UpdateRule("adamw", 0.5)


@pytest.mark.parametrize("optimizer", [None, ""])
def test_without_an_optimizer_there_is_no_update_rule(optimizer: str | None) -> None:
    graph = replace(layered(3, 3, 1), optimizer=optimizer)
    plan = solve(Problem(graph, devices(1, 2)), "heft").plan
    assert plan.optimizer == optimizer
    assert plan.update_rule is None


def test_an_unknown_optimizer_is_refused() -> None:
    fields = msgspec.structs.asdict(_plan()) | {"optimizer": "adamv"}
    _rejected("optimizer: unknown optimizer 'adamv'; did you mean", lambda: Plan(**fields))


def test_an_unknown_decoder_is_refused() -> None:
    fields = msgspec.structs.asdict(_plan()) | {"decoder": "eagre"}
    _rejected("unknown decoder 'eagre'; did you mean 'eager'", lambda: Plan(**fields))


def test_a_file_without_costs_and_optimizer_reads_as_one_that_has_none(tmp_path: Path) -> None:
    plan = _plan()
    content = json.loads(msgspec.json.encode(plan))
    del content["costs_hash"], content["optimizer"]
    (tmp_path / "plan.json").write_text(json.dumps(content))
    assert Plan.read(tmp_path / "plan.json") == plan


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"op0": "d7"}, "uses device 'd7'; did you mean 'd"),
        ({"op0": "\x1b[2J"}, r"uses device '\x1b[2J'"),
        ({"op99": "d0"}, "places op 'op99', which the graph does not have"),
        ({"op0": None}, "places no op 'op0'"),
    ],
)
def test_an_edited_placement_is_checked(changes: dict[str, str | None], message: str) -> None:
    placement = {k: v for k, v in (_plan().placement | changes).items() if v is not None}
    plan = msgspec.structs.replace(_plan(), placement=placement)
    with pytest.raises(PlanError) as error:
        plan.schedule(_problem())
    assert message in str(error.value)


def test_an_op_placed_where_it_may_not_run_is_refused() -> None:
    ops = (Op("a", seconds={"d0": 1.0}), Op("b", seconds={"*": 1.0}, device="d1"))
    problem = Problem(Graph("g", ops), devices(1, 1))
    for placement in ({"a": "d1", "b": "d1"}, {"a": "d0", "b": "d0"}):
        plan = msgspec.structs.replace(_plan(problem), placement=placement)
        _rejected("where it may not run", lambda plan=plan: plan.schedule(problem))


def test_a_split_group_is_refused() -> None:
    problem = Problem(apart(2, group="g"), devices(1, 1))
    plan = msgspec.structs.replace(_plan(problem), placement={"op0": "d0", "op1": "d1"})
    _rejected("group 'g' is split: op 'op0' is placed on 'd0'", lambda: plan.schedule(problem))


def test_calls_are_refused_where_the_rules_have_none() -> None:
    plan = msgspec.structs.replace(_plan(), decoder="calls")
    _rejected("decoder 'calls' is not for rules 'situate'", lambda: plan.schedule(_problem()))


def _text(**changes: Any) -> str:
    return json.dumps(json.loads(msgspec.json.encode(_plan())) | changes)


def _without(field: str) -> bytes:
    content = json.loads(_text())
    del content[field]
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a plan"),
        (b"{}", "not a plan: "),
        (b"[]", "not a plan"),
        (b"\xff\xfe{", "not a plan"),
        (b'{"format": "situate-graph"}', "not a plan: format: "),
        (b"[" * 100_000, "not a plan"),
        ((_text(graph=1)[:-1] + "," + "[" * 100_000).encode(), "not a plan"),
        (_text()[:-40].encode(), "not a plan: .*truncated"),
        (_text().replace('"seed"', '"seed": 1, "seed"').encode(), "the key 'seed' twice"),
        (_text().replace('"op0"', '"op0": "d1", "op0"').encode(), "the key 'op0' twice"),
        (_text(seed="1").encode(), "seed: expected int, got str"),
        (_text(extra=1).encode(), "unknown field extra"),
        (_text(decoder="lazy").encode(), "decoder: invalid enum value 'lazy'"),
        (_text(objective="fun").encode(), "objective: invalid enum value 'fun'"),
        (_text(placement={"op0": 1}).encode(), r"placement\[...\]: expected str, got int"),
        (_text(lower_bound=float("nan")).encode(), "not a plan"),
        (_text(makespan=-1.0).encode(), "makespan: expected float >= 0"),
        (_text(value=-1.0).encode(), "value: expected float >= 0"),
        (_text(seconds=-1.0).encode(), "seconds: expected float >= 0"),
        (_text(evaluations=-1).encode(), "evaluations: expected int >= 0"),
        (_text(peak_memory={"d0": -1}).encode(), r"peak_memory\[...\]: expected int >= 0"),
        (_without("version"), "not a plan: object missing required field version"),
        (_without("placement"), "not a plan: object missing required field `?placement"),
        (_text(version=2).encode(), "version 2; this situate reads version 1"),
        (_text(graph="\ud800").encode(), "not a plan"),
        (_text(**{"a\nb": 1}).encode(), "not a plan"),
    ],
)
def test_a_file_that_is_no_plan_is_named(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    _rejected(f"bad.json: .*{message}", lambda: Plan.read(path))


def test_a_missing_file_a_folder_and_an_impossible_name_are_named(tmp_path: Path) -> None:
    _rejected("missing.json: no such file", lambda: Plan.read(tmp_path / "missing.json"))
    _rejected("Is a directory", lambda: Plan.read(tmp_path))
    _rejected("null", lambda: Plan.read("a\0b"))


def test_a_file_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("situate.results.plan.LIMIT", 1000)
    _rejected("/dev/zero: not a plan: holds more than 1000", lambda: Plan.read("/dev/zero"))


def test_an_unwritable_path_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    for path in (tmp_path / "none" / "plan.json", tmp_path / "file" / "plan.json"):
        with pytest.raises(SituateError, match="cannot write"):
            _plan().write(path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "kept"


def test_the_name_of_a_graph_is_no_part_of_what_it_is() -> None:
    problem = _problem()
    renamed = Problem(replace(problem.graph, name="other"), replace(problem.cluster, name="too"))
    assert isinstance(renamed.cluster, Cluster)
    assert _plan(problem).schedule(renamed).makespan == _plan(problem).makespan


@pytest.mark.parametrize(
    ("bound", "match"),
    [
        ("-1.0", "lower_bound"),
        ("-1e-9", "lower_bound"),
        ("NaN", "not a plan"),
        ("Infinity", "not a plan"),
        ("1e999", "not a plan"),
        ("1e300", "lower_bound: must be between 0 and the plan's value"),
        ("null", "lower_bound and value: must be numbers where the plan fits"),
    ],
)
def test_a_bound_that_bounds_nothing_is_refused(bound: str, match: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    _plan().write(path)
    plan = json.loads(path.read_text())
    text = path.read_text().replace(json.dumps(plan["lower_bound"]), bound, 1)
    path.write_text(text)
    _rejected(match, lambda: Plan.read(path))


def test_a_bound_beside_a_plan_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    _plan().write(path)
    path.write_text(path.read_text().replace('"feasible": true', '"feasible": false'))
    _rejected("lower_bound: must be null where the plan does not fit", lambda: Plan.read(path))


@pytest.mark.parametrize("bound", [-1.0, float("nan"), float("inf"), 1e300])
def test_a_plan_made_in_python_has_a_bound_of_sense(bound: float) -> None:
    plan = _plan()
    _rejected("lower_bound", lambda: msgspec.structs.replace(plan, lower_bound=bound))


def _bred(**changes: Any) -> tuple[Problem, Plan]:
    """A plan that says how urgent its transfers are: two at least."""
    problem = Problem(layered(3, 3, 1), devices(1, 1), rules="regal", **changes)
    plan = solve(problem, "brkga", evaluations=50).plan
    assert isinstance(plan.transfers, list)
    assert len(plan.transfers) >= 2
    return problem, plan


def test_transfers_survive_the_file(tmp_path: Path) -> None:
    problem, plan = _bred()
    plan.write(tmp_path / "plan.json")
    read = Plan.read(tmp_path / "plan.json")
    assert read == plan
    assert read.schedule(problem).makespan == plan.makespan


def test_without_transfers_the_file_has_no_such_field(tmp_path: Path) -> None:
    _plan().write(tmp_path / "plan.json")
    assert "transfers" not in json.loads((tmp_path / "plan.json").read_text())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: [*rows, rows[-1]], "twice, or in vain"),
        (lambda rows: [("zz", *rows[0][1:]), *rows[1:]], "sends tensor 'zz' .*in vain"),
        (lambda rows: [(rows[0][0], "zz", 0), *rows[1:]], "to device 'zz' twice, or in vain"),
        (lambda rows: rows[1:], "leave out that of"),
        (lambda rows: [*rows[:-1], (*rows[-1][:2], 10)], "out of its place"),
        (lambda rows: [(*rows[0][:2], 9), *rows[1:-1], (*rows[-1][:2], 0)], "out of its place"),
    ],
)
def test_transfers_that_are_not_the_placements_are_refused(change: Any, message: str) -> None:
    problem, plan = _bred()
    _rejected(message, lambda: _with_transfers(plan, change(plan.transfers)).schedule(problem))


def _with_transfers(plan: Plan, transfers: Any) -> Plan:
    return msgspec.structs.replace(plan, transfers=transfers)


def test_a_place_below_none_is_refused(tmp_path: Path) -> None:
    _, plan = _bred()
    _with_transfers(plan, [("t0", "d1", -1)]).write(tmp_path / "plan.json")
    _rejected("transfers", lambda: Plan.read(tmp_path / "plan.json"))


def test_transfers_of_control_edges_are_called_after_their_op(tmp_path: Path) -> None:
    graph = Graph(
        "g", (Op("a", seconds={"*": 1.0}), Op("b", seconds={"*": 1.0})), (), control=((0, 1),)
    )
    problem = Problem(graph, devices(1, 1), rules="regal")
    plan = next(
        result.plan
        for seed in range(20)
        if len((result := solve(problem, "brkga", evaluations=1, seed=seed)).devices_used) == 2
    )
    plan.write(tmp_path / "plan.json")
    [[tensor, device, _]] = json.loads((tmp_path / "plan.json").read_text())["transfers"]
    assert (tensor, device) == ({"control": "a"}, plan.placement["b"])
    assert Plan.read(tmp_path / "plan.json").schedule(problem).makespan == plan.makespan
    _rejected(
        "leave out that of the control edges of op 'a'",
        lambda: _with_transfers(plan, []).schedule(problem),
    )


def test_a_plan_of_other_slices_says_both(tmp_path: Path) -> None:
    graph = Graph("g", (Op("a", seconds={"*": 1.0}),), slices=Slices((3, 1)))
    plan = solve(Problem(graph, devices(1)), "heft").plan
    plan.write(tmp_path / "plan.json")
    read = Plan.read(tmp_path / "plan.json")
    assert read.cut == Slices((3, 1))
    other = Problem(replace(graph, slices=None), devices(1))
    _rejected(
        "the plan is of slices 3:1, and the graph of a whole batch", lambda: read.schedule(other)
    )


def test_a_plan_of_other_replicas_says_both(tmp_path: Path) -> None:
    slices = Slices((1, 1), replicas=(1, 1), once=("a",))
    graph = Graph("g", (Op("a", seconds={"*": 1.0}),), slices=slices)
    solve(Problem(graph, devices(1)), "heft").plan.write(tmp_path / "plan.json")
    read = Plan.read(tmp_path / "plan.json")
    assert read.cut == slices
    other = Problem(replace(graph, slices=Slices((1, 1))), devices(1))
    _rejected(
        "the plan is of slices 2, replicas 2, parameters there once 1, and the graph of slices 2:",
        lambda: read.schedule(other),
    )


def test_a_plan_of_other_modules_that_run_again_says_both(tmp_path: Path) -> None:
    plan = solve(Problem(layered_step(3, ("l1",)), devices(1)), "heft").plan
    plan.write(tmp_path / "plan.json")
    read = Plan.read(tmp_path / "plan.json")
    assert read.again == ("l1",)
    other = Problem(layered_step(3), devices(1))
    _rejected(
        "the plan recomputes l1, and the graph nothing: give the modules of the plan",
        lambda: read.schedule(other),
    )
