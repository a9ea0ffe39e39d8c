"""The driver: learners measure, are told, and go on from where they were interrupted."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.lib.killed_workers import Sleeping
from situate.data.costs import Costs
from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.data.rules import RULES
from situate.errors import MissingExtra, SituateError
from situate.evaluators.measurements import Measurements, Origin
from situate.evaluators.simulated import SimulatedMachine
from situate.grouping import make_groups
from situate.results.result import Progress, Result, WorkerProgress
from situate.solvers import LEARNERS, auto, solve
from situate.solvers.budget import Budget
from situate.solvers.learned import sampling
from situate.solvers.learned.driver import learn
from situate.solvers.learned.learner import Learning, Settings
from situate.solvers.learned.post import SoftmaxLearner, SoftmaxSettings, post
from situate.solvers.search import Search
from situate.study import Study, file
from situate.study.file import StudyFile
from situate.study.samples import Packing
from tests.solvers.families import chain, devices, fork
from tests.solvers.killed import PROBLEM, SAMPLES, learner, learnt, outcome, search

SOFTMAX = ("policy_gradient", "ppo", "cross_entropy", "post")

ROOT = Path(__file__).parents[3]
KILLED = 16


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study of a search that was never interrupted."""
    path = tmp_path_factory.mktemp("whole") / "study"
    search(path)
    return path


def _same(one: Path, other: Path) -> bool:
    """True if two studies hold the same samples."""
    a, b = Study.read(one), Study.read(other)
    return (
        np.array_equal(a.measurements.seconds, b.measurements.seconds)
        and np.array_equal(a.measurements.outcome, b.measurements.outcome)
        and np.array_equal(a.batch, b.batch)
        and np.array_equal(list(a.placements()), list(b.placements()))
    )


class Broken(SimulatedMachine):
    """A machine that fails when it is asked for more samples than so many."""

    def __init__(self, error: BaseException, after: int = 0) -> None:
        super().__init__(PROBLEM, 0.1, 3, 1)
        self.error, self.after = error, after

    def measure(self, placements: NDArray[np.int32], first: int) -> Measurements:
        if first + len(placements) > self.after:
            raise self.error
        return super().measure(placements, first)


# In `paper` settings a measurement repeats steps as the paper does.


@pytest.mark.parametrize(
    ("method", "settings", "rule"),
    [
        ("post", "paper", "mean of 10 steps after 1"),
        ("cross_entropy", "paper", "mean of 10 steps after 1"),
        ("post", "tuned", None),
        ("hill_climbing", "paper", None),
    ],
)
@pytest.mark.parametrize("is_own", [False, True], ids=["of the search", "given"])
def test_in_paper_settings_a_measurement_is_of_the_steps_of_the_paper(
    tmp_path: Path, method: str, settings: Settings, rule: str | None, is_own: bool
) -> None:
    problem = Problem(fork(6), devices(1, 1))
    noisy = SimulatedMachine(problem, 0.1, 0)
    how = Learning(settings, study=tmp_path / "study", noise=0.0 if is_own else 0.1)
    learning = replace(how, evaluator=noisy if is_own else None)
    solve(problem, method, evaluations=12, learning=learning)
    name = Study.read(tmp_path / "study").header["evaluator"]
    assert name == f"{noisy.name}, {rule}" if rule else name == noisy.name


# A study never changes a result, however the search that writes it is interrupted.


def test_a_study_does_not_change_the_result(whole: Path, tmp_path: Path) -> None:
    assert outcome(search(tmp_path / "study")) == outcome(search(None))
    assert _same(tmp_path / "study", whole)


def test_a_checkpoint_does_not_change_the_result(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "CHECKPOINT_SECONDS", 0.0)
    assert outcome(search(tmp_path / "study")) == outcome(search(None))
    assert _same(tmp_path / "study", whole)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kill -9")
def test_a_search_that_was_killed_ends_as_if_it_never_was(whole: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.solvers.killed", str(tmp_path), str(KILLED)]
    subprocess.run(command, cwd=ROOT, check=True)
    uninterrupted = outcome(search(None))
    for i in range(KILLED):
        assert outcome(search(tmp_path / f"{i}")) == uninterrupted, i
        assert _same(tmp_path / f"{i}", whole), i


@pytest.mark.parametrize("after", [0, 12, 60, 144])
@pytest.mark.parametrize("every", [0.0, np.inf])
def test_ctrl_c_keeps_what_was_measured(
    after: int, every: float, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "CHECKPOINT_SECONDS", every)
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path / "study", evaluator=Broken(KeyboardInterrupt(), after))
    assert len(Study.read(tmp_path / "study")) == after
    assert outcome(search(tmp_path / "study")) == outcome(search(None))
    assert _same(tmp_path / "study", whole)


def test_a_machine_that_takes_one_at_a_time_loses_one_at_most(whole: Path, tmp_path: Path) -> None:
    machine = Broken(KeyboardInterrupt(), 17)
    machine.at_once = 1
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path / "study", evaluator=machine)
    assert len(Study.read(tmp_path / "study")) == 17
    assert outcome(search(tmp_path / "study")) == outcome(search(None))
    assert _same(tmp_path / "study", whole)


def test_a_complete_study_gives_its_result_without_measuring(whole: Path) -> None:
    machine = Broken(AssertionError("asked"))
    assert outcome(search(whole, evaluator=machine)) == outcome(search(None))


def test_the_final_state_of_the_learner_is_kept(whole: Path, tmp_path: Path) -> None:
    learners: list[SoftmaxLearner] = []

    def make(*arguments: Any) -> SoftmaxLearner:
        learners.append(learner(*arguments))
        return learners[-1]

    search(None, make)
    search(whole, make)
    fresh, resumed = learners[0].state(), learners[1].state()
    assert fresh.keys() == resumed.keys()
    assert all(np.array_equal(fresh[name], resumed[name]) for name in fresh)


@pytest.mark.parametrize("method", LEARNERS)
def test_every_learner_goes_on_as_if_it_was_never_interrupted(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "CHECKPOINT_SECONDS", 0.0)

    def solved(study: Path | None, machine: SimulatedMachine | None = None) -> Result:
        noise = 0.1 if machine is None else 0.0  # a machine brings its own
        learning = Learning(grouping="none", noise=noise, study=study, evaluator=machine)
        return solve(PROBLEM, method, evaluations=90, seed=3, threads=1, learning=learning)

    try:
        uninterrupted = solved(None)
    except MissingExtra as missing:
        pytest.skip(str(missing))
    for after in (30, 70):
        with suppress(KeyboardInterrupt):
            solved(tmp_path / "study", Broken(KeyboardInterrupt(), after))
        assert len(Study.read(tmp_path / "study")) <= after
    resumed = solved(tmp_path / "study")
    assert np.array_equal(resumed.samples, uninterrupted.samples)
    assert np.array_equal(resumed.placement, uninterrupted.placement)
    assert resumed.value == uninterrupted.value


def test_all_batches_are_announced_also_those_of_an_interrupted_search(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path / "study", evaluator=Broken(KeyboardInterrupt(), 60))
    batches: list[tuple[int, int]] = []
    search(tmp_path / "study", on_measured=lambda first, m: batches.append((first, len(m))))
    assert batches == [(first, min(12, SAMPLES - first)) for first in range(0, SAMPLES, 12)]


# A study is resumed only by the search that began it.


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("settings", {"settings": "paper"}),
        ("grouping", {"grouping": "prefix"}),
        ("groups", {"groups": 7}),
        ("evaluator", {"noise": 0.2}),
    ],
)
def test_a_study_of_other_learning_is_refused(
    name: str, changes: dict[str, Any], whole: Path
) -> None:
    with pytest.raises(SituateError, match=f"study: the study has {name} '.*' and this search '"):
        search(whole, **changes)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("graph", {"problem": Problem(chain(12), PROBLEM.cluster)}),
        ("cluster", {"problem": Problem(PROBLEM.graph, devices(1, 1, 1))}),
        ("rules", {"problem": Problem(PROBLEM.graph, PROBLEM.cluster, rules=RULES["regal"])}),
        ("samples", {"evaluations": SAMPLES + 1}),
        ("seed", {"seed": 4}),
        ("method", {"method": "ppo"}),
    ],
)
def test_a_study_of_another_search_is_refused(
    name: str, changes: dict[str, Any], whole: Path
) -> None:
    of: dict[str, Any] = {
        "problem": PROBLEM,
        "evaluations": SAMPLES,
        "seed": 3,
        "method": "post",
    } | changes
    learning = Learning(noise=0.1, study=whole)
    budget = Budget(evaluation_limit=of["evaluations"])
    other = Search(of["problem"], budget=budget, seed=of["seed"], threads=1)
    with pytest.raises(SituateError, match=f"study: the study has {name} '.*' and this search '"):
        learn(other, of["method"], learner, learning)


def test_a_study_whose_sample_is_where_an_op_may_not_run_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = Graph("g", (Op("a", seconds={"*": 1.0}, device="d0"), Op("b", seconds={"*": 1.0})))
    problem = Problem(graph, devices(1, 1))

    def run() -> None:
        learning = Learning(noise=0.1, study=tmp_path / "study")
        learn(Search(problem, budget=Budget(None, 24), threads=1), "post", post, learning)

    run()
    monkeypatch.setattr(Packing, "unpack", lambda *_: np.array([1, 0], np.int32))
    with pytest.raises(SituateError, match="study: sample 0: op 'a' is placed on 'd1', where it m"):
        run()


def _coarse(problem: Problem, learning: Learning, samples: int, seed: int) -> SoftmaxLearner:
    groups = make_groups(problem, np.arange(problem.units) // 2)
    return SoftmaxLearner(groups, SoftmaxSettings(), samples, 100.0, seed)


def test_a_checkpoint_of_another_shape_is_refused(whole: Path) -> None:
    with pytest.raises(SituateError, match=r"study: the checkpoint's 'logits' is .*; give another"):
        search(whole, _coarse)


def test_a_checkpoint_of_no_numbers_is_refused(whole: Path) -> None:
    with StudyFile(whole, Study.read(whole).header) as study:
        count, state = study.checkpoint()
        assert state is not None
        study.keep(count, lambda: {**state, "numbers": np.full(3, np.inf)}, now=True)
    with pytest.raises(SituateError, match=r"study: cannot convert float inf.*; give another file"):
        search(whole)


def test_a_learner_that_asks_for_other_placements_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path / "study", evaluator=Broken(KeyboardInterrupt(), 24))
    with pytest.raises(SituateError, match=r"study: made by another version .*: sample 0 differs"):
        search(tmp_path / "study", _coarse)


# Failures, and arrays that are overwritten later, never spoil the plan.


class Fixed:
    """A machine that answers the same whatever it is asked."""

    name = "fixed"
    at_once = None
    finalists = 0

    def __init__(self, seconds: float, outcome: int, missing: int = 0) -> None:
        self.seconds, self.outcome, self.missing = seconds, outcome, missing

    def measure(self, placements: NDArray[np.int32], first: int) -> Measurements:
        k = len(placements) - self.missing
        seconds = np.where(np.arange(first, first + k) == 5, 1000.0, self.seconds)
        outcome = np.where(np.arange(first, first + k) == 5, 0, self.outcome)
        return Measurements(seconds, outcome.astype(np.uint8))


def test_a_placement_that_failed_is_not_the_best() -> None:
    """Whatever seconds it comes with."""
    result = search(None, evaluator=Fixed(0.001, 2))
    assert len(result.history) == 1
    proposals = learner(PROBLEM, Learning(), SAMPLES, 3).ask(12)
    assert np.array_equal(result.placement, proposals[5])


class Writing:
    """A learner that spoils the arrays that it is told of."""

    def __init__(self, problem: Problem, *_: object) -> None:
        self.learner = learner(problem, Learning(), SAMPLES, 3)
        self.batch = self.learner.batch
        self.ask, self.state = self.learner.ask, self.learner.state
        self.restore = self.learner.restore

    def tell(self, placements: NDArray[np.int32], measurements: Measurements) -> None:
        placements[:] = 0
        np.subtract(measurements.seconds, 100, out=measurements.seconds)


def test_a_learner_that_writes_into_what_it_is_told_does_not_spoil_the_plan() -> None:
    result = solve(PROBLEM, Writing, evaluations=12)
    proposals = learner(PROBLEM, Learning(), SAMPLES, 3).ask(12)
    seconds = SimulatedMachine(PROBLEM).measure(proposals, 0).seconds
    np.testing.assert_array_equal(result.samples, seconds)
    assert (
        result.value
        == seconds.min()
        < SimulatedMachine(PROBLEM).measure(0 * proposals, 0).seconds[0]
    )


class Overwriting(SimulatedMachine):
    """A machine that spoils the placements that it is given."""

    def measure(self, placements: NDArray[np.int32], first: int) -> Measurements:
        result = super().measure(placements, first)
        placements[:] = 0
        return result


def test_a_machine_that_writes_into_what_it_is_given_does_not_spoil_the_plan() -> None:
    result = search(None, evaluator=Overwriting(PROBLEM))
    wanted = search(None, evaluator=SimulatedMachine(PROBLEM))
    assert result.placement.tolist() == wanted.placement.tolist()


class Remembering(SimulatedMachine):
    """A machine whose length is that of its memory: false while that is empty."""

    def __len__(self) -> int:
        return 0


def test_an_evaluator_that_is_empty_measures_all_the_same() -> None:
    machine = Remembering(PROBLEM, 0.3, 5)
    noisy = solve(PROBLEM, "ppo", evaluations=12, learning=Learning(evaluator=machine))
    plain = solve(PROBLEM, "ppo", evaluations=12)
    assert not np.array_equal(noisy.samples, plain.samples)
    assert noisy.measured is not None


def test_a_placement_that_failed_took_endlessly_whatever_seconds_it_comes_with() -> None:
    learning = Learning(evaluator=Fixed(0.001, 2))
    samples = solve(PROBLEM, "post", evaluations=12, learning=learning).samples
    assert np.flatnonzero(np.isfinite(samples)).tolist() == [5]


# Impossible measurements are refused, and searches that nothing can come of.


@pytest.mark.parametrize("seconds", [np.nan, -1.0, np.inf])
def test_seconds_that_cannot_be_are_refused(seconds: float) -> None:
    with pytest.raises(SituateError, match=f"evaluator 'fixed' measured {seconds} seconds; a step"):
        search(None, evaluator=Fixed(seconds, 0))


def test_an_answer_to_fewer_placements_is_refused() -> None:
    with pytest.raises(SituateError, match="evaluator 'fixed' measured 11 of 12 placements"):
        search(None, evaluator=Fixed(1.0, 0, missing=1))


def test_only_time_is_learned_from() -> None:
    other = replace(PROBLEM, objective="memory")
    with pytest.raises(SituateError, match="method 'post' learns from step times: it cannot plan"):
        learn(Search(other), "post", learner, Learning())


def test_a_search_in_which_nothing_ran_says_how_to_go_on() -> None:
    full = replace(PROBLEM, cluster=devices(1, 1, 2, memory=3))
    searching = Search(full, budget=Budget(evaluation_limit=24), threads=1)
    with pytest.warns(UserWarning, match=r"none of 24 placements ran \(out of memory\)"):
        learn(searching, "post", learner, Learning())
    assert searching.best is not None
    first = learner(full, Learning(), 24, 0).ask(12)[0]
    assert np.array_equal(searching.best.placement, first)


# Small budgets, small problems and large noise are searches like others.


def test_no_more_is_measured_than_the_budget_allows() -> None:
    roomy = Problem(chain(4), devices(1, 2))
    for samples in (1, 5, 12, 13):
        searching = Search(roomy, budget=Budget(evaluation_limit=samples), threads=1)
        learn(searching, "post", learner, Learning())
        assert searching.budget.evaluations == samples


@pytest.mark.parametrize("method", SOFTMAX)
@pytest.mark.parametrize("settings", ["tuned", "paper"])
@pytest.mark.parametrize(
    "problem",
    [Problem(fork(8), devices(1)), Problem(chain(1), devices(1, 2)), Problem(chain(1), devices(1))],
    ids=["one device", "one group", "one of each"],
)
def test_where_there_is_little_to_choose_the_best_is_found(
    method: str, settings: Settings, problem: Problem
) -> None:
    result = solve(problem, method, evaluations=130, learning=Learning(settings=settings))
    assert result.value == result.lower_bound


@pytest.mark.parametrize("method", SOFTMAX)
def test_fewer_samples_than_a_batch_are_a_search_as_well(method: str) -> None:
    result = solve(Problem(fork(8), devices(1, 1)), method, evaluations=5)
    assert len(result.samples) == 5
    assert result.value == result.samples.min()


@pytest.mark.parametrize("method", SOFTMAX)
@pytest.mark.parametrize("noise", [3.0, 1e6])
def test_noise_that_drowns_everything_crashes_nothing(method: str, noise: float) -> None:
    problem = Problem(fork(8), devices(1, 1))
    result = solve(problem, method, evaluations=240, learning=Learning(noise=noise))
    result.schedule.verify(problem)
    assert np.isfinite(result.samples).all()


COSTS = Costs("here", "today", {}, [], [], 0.0, 0.0)


# With measured costs a search on hardware begins with the plan of `auto`.


@pytest.mark.parametrize(
    ("costs", "real", "planned"), [(COSTS, True, True), (COSTS, False, False), (None, True, False)]
)
def test_on_a_machine_with_known_costs_learners_can_start_with_what_auto_plans(
    costs: Costs | None, real: bool, planned: bool
) -> None:
    problem, starts = Problem(fork(10), devices(1, 1, 2), costs=costs), []

    def make(problem: Problem, learning: Learning, samples: int, seed: int) -> SoftmaxLearner:
        starts.append(learning.start() if learning.start else None)
        return learner(problem, learning, samples, seed)

    machine = SimulatedMachine(problem) if real else None
    search = Search(problem, budget=Budget(evaluation_limit=24), threads=1)
    learn(search, "post", make, Learning(evaluator=machine))
    if planned:
        auto = solve(problem, "auto", evaluations=5000, seed=0).placement
        np.testing.assert_array_equal(starts[0], auto)
    else:
        assert starts == [None]


def test_a_search_goes_on_from_the_plan_that_it_started_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever `auto` plans in another time."""
    problem = Problem(fork(10), devices(1, 1, 2), costs=COSTS)

    def run(most: int) -> Result:
        learning = Learning(evaluator=OneByOne(problem, most), study=tmp_path / "study")
        budget = Budget(evaluation_limit=24)
        return learnt(Search(problem, budget=budget, threads=1), post, learning)

    with suppress(SystemExit):
        run(3)
    monkeypatch.setattr(auto, "run", lambda planning: pytest.fail("planned again"))
    assert len(run(24).samples) == 24


class OneByOne(SimulatedMachine):
    """A machine that takes one placement after the other, and no more than so many."""

    at_once = 1

    def __init__(self, problem: Problem, most: int) -> None:
        super().__init__(problem)
        self.most = most

    def measure(self, placements: NDArray[np.int32], first: int) -> Measurements:
        if first >= self.most:
            raise SystemExit
        return super().measure(placements, first)


def test_no_batch_is_begun_that_there_is_no_time_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve samples a batch, each of a second."""
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    simulate = SimulatedMachine.measure

    def slow(machine: SimulatedMachine, placements: Any, first: int) -> Measurements:
        now[0] += len(placements)
        return simulate(machine, placements, first)

    monkeypatch.setattr(SimulatedMachine, "measure", slow)
    problem = Problem(fork(6), devices(1, 2))
    result = solve(problem, "ppo", time_limit=40, learning=Learning(settings="paper"))
    assert (len(result.samples), result.seconds) == (36, 36.0)


# Workers change neither samples nor results, and their progress is visible.


@pytest.mark.parametrize("workers", [1, 2, 12])
def test_a_study_is_the_same_with_any_number_of_workers(
    workers: int, whole: Path, tmp_path: Path
) -> None:
    search(tmp_path / "study", workers=workers)
    assert _same(tmp_path / "study", whole)


def test_workers_are_told_of_while_they_measure_a_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "REPORT_SECONDS", 0.0)
    machine = Sleeping(PROBLEM, 0.0, 0, tmp_path, 0.01)
    reports: list[Progress] = []
    learning = Learning(evaluator=machine, workers=2)
    solve(PROBLEM, "post", evaluations=12, on_progress=reports.append, learning=learning)
    workers = [progress.workers for progress in reports if progress.workers is not None]
    assert len(workers) > 12
    assert max(result.busy for result in workers) >= 1
    assert workers[-1] == WorkerProgress(count=2, busy=0, measured=12, failures=0)


class Lucky(SimulatedMachine):
    """A machine that takes half as long as another one, which is asked about the best."""

    def __init__(self, problem: Problem, elsewhere: bool = True) -> None:
        super().__init__(problem)
        self._may_ask = elsewhere

    def measure(self, placements: NDArray[np.int32], first: int) -> Measurements:
        result = super().measure(placements, first)
        origins = (Origin("here", 1.0),) * len(result)
        return Measurements(result.seconds / 2, result.outcome, origins)

    def measure_elsewhere(
        self, placement: NDArray[np.int32], number: int, origin: Origin | None
    ) -> Measurements:
        assert self._may_ask
        assert origin == Origin("here", 1.0)
        result = super().measure(placement[None], number)
        # It needs twice as long for the reference step too.
        return Measurements(result.seconds * 2, result.outcome, (Origin("there", 2.0),))


def test_what_would_be_the_best_counts_as_what_another_worker_measures(tmp_path: Path) -> None:
    problem = Problem(fork(10), devices(1, 1, 2))

    def run(elsewhere: bool) -> Result:
        learning = Learning(evaluator=Lucky(problem, elsewhere), study=tmp_path / "study")
        budget = Budget(evaluation_limit=48)
        return learnt(Search(problem, budget=budget, threads=1), post, learning)

    result, again = run(True), run(False)
    true = SimulatedMachine(problem).measure(result.placement[None], 0).seconds[0]
    assert result.measured == true
    assert again.measured == true
    assert np.array_equal(result.samples, again.samples)
    assert [by.place for by in Study.read(tmp_path / "study").workers] == ["here", "there"]


def test_figures_of_workers_and_controllers_are_there_while_a_search_runs() -> None:
    reports: list[Progress] = []
    learning = Learning(controllers=2)
    solve(PROBLEM, "colocrl", evaluations=24, on_progress=reports.append, learning=learning)
    assert reports[-1].figures.keys() == {"controllers/staleness"}
    assert reports[0].figures == {"controllers/staleness": 0.0}
