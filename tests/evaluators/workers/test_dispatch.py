"""Tasks are answered once each, whatever workers do; the workers here follow a script."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from situate.errors import SituateError
from situate.evaluators.measurements import Measurements
from situate.evaluators.workers import dispatch
from situate.evaluators.workers.dispatch import (
    HUNG_SECONDS,
    SLOW_SECONDS,
    START_SECONDS,
    Dispatch,
)
from situate.evaluators.workers.messages import (
    Answer,
    Failure,
    Hello,
    Message,
    Ready,
    Task,
    Unready,
)
from situate.evaluators.workers.workers import NoWorkers, Terms
from situate.results.result import WorkerProgress

Says = Callable[[int, Task], Message | None]
"""The answer of a worker to a task; None where it never answers."""


def answer(task: Task) -> Answer:
    return Answer(Measurements(task.numbers + 1.0, np.zeros(len(task), np.uint8)))


def tasks(count: int) -> list[Task]:
    """One sample each."""
    return [Task(np.zeros((1, 2), np.int32), np.array([number])) for number in range(count)]


class Scripted:
    """Workers that say something else than usual where `says` does, and a clock that moves when
    nobody speaks.

    Attributes:
        begun: who began which sample, in order.
        given: the samples that each has not answered, the first of which it began.
        queued: samples that waited behind another.
        later: messages that come at some time.
    """

    def __init__(self, says: Says = lambda worker, task: answer(task)) -> None:
        self.says = says
        self.hello: Hello | None = Hello("here")
        self.ready: Callable[[int], Ready | Unready] = lambda worker: Ready(f"place {worker}")
        self.shown: Mapping[str, float] = {}
        self.now = 0.0
        self.started: list[int] = []
        self.stopped: list[int] = []
        self.begun: list[tuple[int, int]] = []
        self.given: dict[int, deque[Task]] = {}
        self.queued: list[int] = []
        self.later: list[tuple[float, int, Message]] = []

    def monotonic(self) -> float:
        return self.now

    def say(self, worker: int, message: Message | None, after: float = 0.0) -> None:
        if message is not None:
            self.later.append((self.now + after, worker, message))

    def start(self, worker: int) -> None:
        self.started.append(worker)
        self.given[worker] = deque()
        self.say(worker, self.hello)

    def equip(self, worker: int) -> None:
        self.say(worker, self.ready(worker))

    def give(self, worker: int, task: Task) -> None:
        self.given[worker].append(task)
        if len(self.given[worker]) == 1:
            self.begin(worker)
        else:
            self.queued.append(int(task.numbers[0]))

    def begin(self, worker: int) -> None:
        task = self.given[worker][0]
        self.begun.append((worker, int(task.numbers[0])))
        self.say(worker, self.says(worker, task))

    def wait(self, seconds: float | None) -> list[tuple[int, Message]]:
        due = [pair for pair in self.later if pair[0] <= self.now]
        self.later = [pair for pair in self.later if pair[0] > self.now]
        if not due:
            self.now += seconds or 1.0
        for _, worker, message in due:
            if isinstance(message, Answer):
                self.given[worker].popleft()
                if self.given[worker]:
                    self.begin(worker)
        return [(worker, message) for _, worker, message in due]

    def show(self, figures: Mapping[str, float]) -> None:
        self.shown = figures

    def stop(self, worker: int) -> None:
        self.stopped.append(worker)
        self.later = [pair for pair in self.later if pair[1] != worker]

    def close(self) -> None:
        self.later = []


Make = Callable[..., tuple[Scripted, Dispatch]]


@pytest.fixture
def giving_dispatch(monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes workers that follow a script, and who gives them their tasks."""

    def make(
        count: int,
        says: Says = lambda worker, task: answer(task),
        alike: bool = True,
        **terms: Any,
    ) -> tuple[Scripted, Dispatch]:
        workers = Scripted(says)
        monkeypatch.setattr(dispatch, "time", SimpleNamespace(monotonic=workers.monotonic))
        return workers, Dispatch(workers, count, Terms(**terms), alike)

    return make


def numbers(values: Iterator[tuple[int, Measurements]]) -> list[int]:
    """The numbers of tasks, each answered once and rightly."""
    answered = []
    for number, completed in values:
        assert completed.seconds.tolist() == [number + 1.0]
        answered.append(number)
    assert len(set(answered)) == len(answered)
    return sorted(answered)


def times_begun(workers: Scripted, number: int) -> int:
    return [sample_numbers for _, sample_numbers in workers.begun].count(number)


# The start of workers, and tasks added later.
def test_workers_start_with_the_first_task(giving_dispatch: Make) -> None:
    workers, giving = giving_dispatch(3)
    assert not workers.started
    assert giving.progress() is None
    for _ in range(2):
        assert numbers(giving.answers(tasks(7))) == list(range(7))
    assert workers.started == [0, 1, 2]
    assert giving.progress() == WorkerProgress(count=3, busy=0, measured=14, failures=0)


def test_tasks_may_be_added_while_there_are_some(giving_dispatch: Make) -> None:
    _, giving = giving_dispatch(2)
    growing = tasks(3)
    answered = []
    for number, _ in giving.answers(growing):
        answered.append(number)
        if len(growing) < 9:
            growing.append(tasks(9)[len(growing)])
    assert sorted(answered) == list(range(9))


def test_workers_are_ready_before_there_is_a_task(giving_dispatch: Make) -> None:
    workers, giving = giving_dispatch(2)
    assert giving.ready(5.0) == 2
    assert workers.started == [0, 1]
    workers, giving = giving_dispatch(2)
    workers.hello = None
    assert giving.ready(5.0) == 0
    assert 5.0 <= workers.now < START_SECONDS


def test_no_task_needs_no_worker_to_answer(giving_dispatch: Make) -> None:
    _, giving = giving_dispatch(2)
    assert numbers(giving.answers([])) == []


# Failing workers start again, are left out at last, and lose no task.
def test_a_worker_that_fails_is_started_again_and_its_task_given_again(
    giving_dispatch: Make,
) -> None:
    def says(worker: int, task: Task) -> Message:
        first = times_begun(workers, int(task.numbers[0])) == 1
        return Failure("fell") if first and task.numbers[0] == 2 else answer(task)

    workers, giving = giving_dispatch(2, says)
    assert numbers(giving.answers(tasks(5))) == list(range(5))
    assert len(workers.started) == 3
    assert giving.counts.again == 1
    assert sum(giving.counts.failures.values()) == 1
    assert sum(giving.counts.completed.values()) == 5


def test_a_worker_that_fails_while_it_starts_is_left_out_with_a_warning(
    giving_dispatch: Make,
) -> None:
    workers, giving = giving_dispatch(2)
    start = workers.start

    def only_the_second(worker: int) -> None:
        start(worker)
        if worker == 0:
            workers.later[-1] = (workers.now, 0, Failure("has no library"))

    workers.start = only_the_second  # type: ignore[method-assign]
    with pytest.warns(UserWarning, match="worker 0 is left out after 3 failures; the last: it has"):
        assert numbers(giving.answers(tasks(5))) == list(range(5))
    assert giving.counts.left_out == {0: "has no library"}
    assert giving.counts.completed == {1: 5}


def test_workers_that_never_start_are_named_with_a_remedy(giving_dispatch: Make) -> None:
    workers, giving = giving_dispatch(1)
    workers.hello = None
    with pytest.raises(
        SituateError, match=r"no worker is left; .* did not start within 120 s: its machine is"
    ):
        numbers(giving.answers(tasks(1)))
    assert workers.now >= 3 * START_SECONDS
    assert workers.stopped == [0, 0, 0]


def test_a_worker_of_another_version_is_refused(giving_dispatch: Make) -> None:
    workers, giving = giving_dispatch(2)
    workers.hello = Hello("there", "0.0.7")
    with pytest.raises(
        SituateError, match=r"^worker 0 on 'there' has situate 0\.0\.7, and this is .*: install"
    ):
        numbers(giving.answers(tasks(1)))


# Slow and hung workers, by the usual time of the tasks.
def test_a_hung_worker_is_ended(giving_dispatch: Make) -> None:
    workers, giving = giving_dispatch(
        2,
        lambda worker, task: None if (worker, task.numbers[0]) == (0, 0) else answer(task),
        limit=2.0,
    )
    assert numbers(giving.answers(tasks(5))) == list(range(5))
    assert numbers(giving.answers(tasks(5))) == list(range(5))
    assert times_begun(workers, 0) == 3


def test_a_worker_is_hung_after_many_times_the_usual(giving_dispatch: Make) -> None:
    workers, giving = giving_dispatch(1)
    numbers(giving.answers(tasks(3)))
    workers.says = lambda worker, task: None if not workers.stopped else answer(task)
    assert numbers(giving.answers(tasks(1))) == [0]
    assert workers.stopped == [0]
    assert workers.now >= HUNG_SECONDS


def test_a_busy_caller_makes_no_worker_late(
    giving_dispatch: Make,
) -> None:
    workers, giving = giving_dispatch(3, limit=1.0)
    for _ in giving.answers(tasks(9)):
        workers.now += 50.0
    assert not workers.stopped
    assert not giving.counts.failures
    assert not giving.counts.again


def test_a_slow_task_is_given_to_another_and_counts_once(giving_dispatch: Make) -> None:
    def says(worker: int, task: Task) -> Message | None:
        if task.numbers[0] == 4 and times_begun(workers, 4) == 1:
            workers.say(worker, answer(task), after=2 * SLOW_SECONDS)
            return None
        return answer(task)

    workers, giving = giving_dispatch(2, says)
    assert numbers(giving.answers(tasks(5))) == list(range(5))
    assert giving.counts.again == 1
    workers.now += 2 * SLOW_SECONDS  # the second answer comes while others are measured
    assert numbers(giving.answers(tasks(5))) == list(range(5))
    assert sum(giving.counts.completed.values()) == 10
    assert not giving.counts.failures


def _busy(workers: Scripted, seconds: float) -> Says:
    """Every task takes so long."""

    def says(worker: int, task: Task) -> None:
        workers.say(worker, answer(task), after=seconds)

    return says


# Second tasks in a worker's queue.
def test_short_tasks_wait_at_the_worker_but_for_the_last(giving_dispatch: Make) -> None:
    workers, giving = giving_dispatch(2)
    numbers(giving.answers(tasks(2)))
    workers.says = _busy(workers, 0.5)
    assert numbers(giving.answers(tasks(8))) == list(range(8))
    assert workers.queued == [2, 3, 4, 5]
    assert not giving.counts.again


def test_long_tasks_do_not_wait_at_the_worker(giving_dispatch: Make) -> None:
    workers, giving = giving_dispatch(2)
    workers.says = _busy(workers, 5.0)
    assert numbers(giving.answers(tasks(20))) == list(range(20))
    assert not workers.queued


def test_time_counts_from_when_a_task_began(giving_dispatch: Make) -> None:
    workers, giving = giving_dispatch(2, limit=1.0)
    numbers(giving.answers(tasks(2)))
    workers.says = _busy(workers, 0.7)
    assert numbers(giving.answers(tasks(12))) == list(range(12))
    assert not giving.counts.failures


def test_a_task_in_the_queue_of_a_failing_worker_is_no_failure(giving_dispatch: Make) -> None:
    """The worker fails at every sample but one, at which nobody but it would be counted."""
    workers, giving = giving_dispatch(2)
    numbers(giving.answers(tasks(2)))

    def says(worker: int, task: Task) -> Message:
        first = times_begun(workers, int(task.numbers[0])) == 1
        return Failure("fell") if worker == 1 and first and task.numbers[0] < 4 else answer(task)

    workers.begun.clear()
    workers.says = says
    assert numbers(giving.answers(tasks(12))) == list(range(12))
    failed = sum(giving.counts.failures.values())
    assert failed
    assert len(workers.begun) == 12 + failed


def test_a_task_behind_a_slow_one_is_done_by_another_worker(giving_dispatch: Make) -> None:
    workers, giving = giving_dispatch(2)
    numbers(giving.answers(tasks(2)))
    workers.says = lambda worker, task: None if worker == 1 else answer(task)
    assert numbers(giving.answers(tasks(12))) == list(range(12))
    assert giving.counts.again == 2
    assert workers.now < HUNG_SECONDS


# Repeated tasks: answers and errors that arrive too late.
def test_tasks_that_differ_are_neither_slow_nor_hung(giving_dispatch: Make) -> None:
    workers, giving = giving_dispatch(2, alike=False)
    assert numbers(giving.answers(tasks(5))) == list(range(5))
    workers.says = _busy(workers, 2 * HUNG_SECONDS)
    assert numbers(giving.answers(tasks(5))) == list(range(5))
    assert not giving.counts.again
    assert not workers.stopped


def test_an_error_of_who_was_too_slow_is_no_longer_of_interest(giving_dispatch: Make) -> None:
    def says(worker: int, task: Task) -> Message | None:
        if task.numbers[0] == 4 and times_begun(workers, 4) == 1:
            workers.say(worker, Answer(None, ValueError("late")), after=2 * SLOW_SECONDS)
            return None
        return answer(task)

    workers, giving = giving_dispatch(2, says)
    assert numbers(giving.answers(tasks(5))) == list(range(5))
    workers.now += 2 * SLOW_SECONDS
    assert numbers(giving.answers(tasks(4))) == list(range(4))


def test_an_answered_task_is_not_assigned_a_third_time(
    giving_dispatch: Make,
) -> None:
    workers, giving = giving_dispatch(3)
    numbers(giving.answers(tasks(3)))

    def says(worker: int, task: Task) -> Message | None:
        if task.numbers[0] == 0:  # two have it; then one fails, and the other answers
            if times_begun(workers, 0) == 2:
                first, second = (who for who, number in workers.begun if number == 0)
                workers.say(first, Failure("fell"))
                workers.say(second, answer(task))
            return None
        workers.say(worker, answer(task), after=1.0)
        return None

    workers.says = says
    workers.begun.clear()
    assert numbers(giving.answers(tasks(8))) == list(range(8))
    assert times_begun(workers, 0) == 2


def test_the_error_of_an_evaluator_is_raised_after_what_was_measured_before(
    giving_dispatch: Make,
) -> None:
    def says(worker: int, task: Task) -> Message:
        return Answer(None, ValueError("no")) if task.numbers[0] == 1 else answer(task)

    workers, giving = giving_dispatch(2, says)
    pair = giving.answers(tasks(4))
    assert next(pair)[0] == 0
    with pytest.raises(ValueError, match=r"^no$"):
        next(pair)
    workers.says = lambda worker, task: answer(task)
    assert numbers(giving.answers(tasks(4))) == list(range(4))


# Batches that their caller abandons.
def test_a_batch_that_is_not_waited_for_is_forgotten(giving_dispatch: Make) -> None:
    """Its answers and failures come while the next is measured."""
    workers, giving = giving_dispatch(4)
    pair = giving.answers(tasks(12))
    workers.says = lambda worker, task: answer(task) if task.numbers[0] == 0 else None
    assert next(pair)[0] == 0
    pair.close()  # type: ignore[attr-defined]
    assert giving.progress() == WorkerProgress(count=4, busy=3, measured=1, failures=0)
    abandoned: Sequence[Message] = (Failure("fell"), answer(tasks(3)[2]), Answer(None, OSError()))
    for (worker, _), message in zip(workers.begun[1:4], abandoned, strict=True):
        workers.say(worker, message)
    workers.says = lambda worker, task: answer(task)
    assert numbers(giving.answers(tasks(12))) == list(range(12))
    assert giving.counts.again == 0


def test_a_worker_of_an_abandoned_batch_is_free_again(giving_dispatch: Make) -> None:
    """All answer at once, and only one is heard."""
    workers, giving = giving_dispatch(4)
    pair = giving.answers(tasks(4))
    next(pair)
    pair.close()  # type: ignore[attr-defined]
    assert numbers(giving.answers(tasks(4))) == list(range(4))
    workers.begun.clear()
    assert numbers(giving.answers(tasks(4))) == list(range(4))
    assert sorted(worker for worker, _ in workers.begun) == [0, 1, 2, 3]


# Tasks that no worker can do, or only another one.
def test_a_task_at_which_workers_fail_ends_the_search(giving_dispatch: Make) -> None:
    def says(worker: int, task: Task) -> Message:
        return Failure("fell") if task.numbers[0] == 3 else answer(task)

    _, giving = giving_dispatch(4, says)
    with pytest.raises(
        SituateError, match=r"^sample 3: 3 workers failed at it, the last one fell$"
    ):
        numbers(giving.answers(tasks(6)))


def test_a_task_is_done_elsewhere_where_there_is_another(giving_dispatch: Make) -> None:
    workers, giving = giving_dispatch(3)
    one = Task(np.zeros((1, 2), np.int32), np.array([0]), avoid="place 0")
    for _ in range(2):
        assert numbers(giving.answers([one])) == [0]
    workers.says = lambda worker, task: Failure("fell") if worker == 1 else answer(task)
    assert numbers(giving.answers([one])) == [0]
    assert workers.begun == [(1, 0), (1, 0), (1, 0), (2, 0)]


def test_a_task_that_nobody_else_can_do_is_done_all_the_same(giving_dispatch: Make) -> None:
    _, giving = giving_dispatch(1)
    one = Task(np.zeros((1, 2), np.int32), np.array([0]), avoid="place 0")
    assert numbers(giving.answers([one])) == [0]


# Terms: start limits, lost tasks, and terms of single tasks.
def test_a_worker_that_is_not_fit_is_started_again_and_left_out_in_the_end(
    giving_dispatch: Make,
) -> None:
    workers, giving = giving_dispatch(2)
    workers.ready = lambda worker: Ready() if worker else Unready("has no core")
    with pytest.warns(UserWarning, match="worker 0 is left out .* the last: it has no core"):
        assert numbers(giving.answers(tasks(4))) == list(range(4))
    assert workers.stopped == [0, 0, 0]


def test_a_worker_may_take_as_long_to_start_as_it_is_allowed(giving_dispatch: Make) -> None:
    workers, giving = giving_dispatch(1, start_limit=7.0)
    workers.hello = None
    with pytest.raises(SituateError, match="did not start within 7 s"):
        numbers(giving.answers(tasks(1)))
    assert workers.now < START_SECONDS


def test_a_task_at_which_workers_fail_counts_as_lost_where_that_is_a_result(
    giving_dispatch: Make,
) -> None:
    def says(worker: int, task: Task) -> Message:
        return Failure("fell") if task.numbers[0] == 3 else answer(task)

    reasons: list[str] = []

    def lost(reason: str) -> Measurements:
        reasons.append(reason)
        return Measurements(np.array([4.0]), np.array([2], np.uint8))

    _, giving = giving_dispatch(4, says, lost=lost)
    assert numbers(giving.answers(tasks(6))) == list(range(6))
    assert reasons == ["3 workers failed at it, the last one fell"]


def test_tasks_may_have_terms_of_their_own(giving_dispatch: Make) -> None:
    """No other worker repeats a task that one missed or failed."""
    workers, giving = giving_dispatch(3, alike=False)
    messages_sent = {0: None, 1: Failure("fell")}
    workers.says = lambda worker, task: messages_sent.get(int(task.numbers[0]), answer(task))
    own = Terms(limit=5.0, tries=1, lost=lambda reason: reason)
    values = dict(giving.answers(tasks(6), own))
    assert values[0] == "its worker did not answer within 5 s"
    assert values[1] == "its worker fell"
    assert len(values) == len(workers.begun) == 6
    assert giving.counts.again == 0
    workers.says = lambda worker, task: answer(task)
    assert numbers(giving.answers(tasks(6))) == list(range(6))


# Figures, and tasks that cannot be sent.
def test_figures_are_shown_on_the_workers_board(giving_dispatch: Make) -> None:
    workers, giving = giving_dispatch(1)
    giving.show({"best_seconds": 2.0})
    assert workers.shown == {"best_seconds": 2.0}


def test_a_task_that_could_not_be_given_is_no_answer_later(
    giving_dispatch: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers, dispatched = giving_dispatch(2)
    assert numbers(dispatched.answers(tasks(6))) == list(range(6))

    def lost(worker: int, task: Task) -> None:
        raise NoWorkers("lost")

    with monkeypatch.context() as patched:
        patched.setattr(workers, "give", lost)
        with pytest.raises(NoWorkers):
            list(dispatched.answers(tasks(6)))
    assert numbers(dispatched.answers(tasks(12))) == list(range(12))
