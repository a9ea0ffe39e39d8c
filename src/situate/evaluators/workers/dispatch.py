"""Tasks given to workers until each is answered once, whoever fails or is slow meanwhile."""

from __future__ import annotations

import statistics
import time
import warnings
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from situate.errors import SituateError
from situate.evaluators.workers.messages import (
    Answer,
    Counts,
    Failure,
    Hello,
    Message,
    Ready,
    Task,
    Unready,
    Work,
)
from situate.evaluators.workers.workers import DEFAULT_TERMS, NoWorkers, Terms, Workers
from situate.results.result import WorkerProgress
from situate.version import VERSION

START_SECONDS = 120.0
"""Seconds that a worker has to start."""

MAX_WORKER_FAILURES = 3
"""Failures of a worker, one after the other, after which it is left out."""

SLOW_FACTOR, SLOW_SECONDS = 3.0, 0.5
"""Multiple of the usual time of a task, and seconds at least, after which an idle worker is given
it too."""

HUNG_FACTOR, HUNG_SECONDS = 20.0, 60.0
"""The same after which a worker is ended."""

RECENT_TASKS = 101
"""Tasks whose median time is the usual one."""

TICK_SECONDS = 0.1
"""Seconds between two looks at who is late."""

SHORT_SECONDS = 1.0
"""Usual seconds of a task below which a worker is given the next one before it has answered: what
it would else wait for this process is a part of so little that counts."""


@dataclass
class _Batch:
    """Tasks that are done together, on the same terms."""

    tasks: Sequence[Work]
    terms: Terms
    waiting: deque[int] = field(default_factory=deque)
    failures: list[int] = field(default_factory=list)
    unanswered: set[int] = field(default_factory=set)

    def grow(self) -> None:
        """Take the tasks that are new."""
        new = range(len(self.failures), len(self.tasks))
        self.waiting.extend(new)
        self.unanswered.update(new)
        self.failures += [0] * len(new)


@dataclass
class _Attempt:
    """A task that a worker was given, and when it began; infinite while one before it runs."""

    batch: _Batch
    number: int
    since: float

    @property
    def task(self) -> Work:
        return self.batch.tasks[self.number]

    @property
    def wanted(self) -> bool:
        """True until it is answered by anyone."""
        return self.number in self.batch.unanswered


class Dispatch:
    """Gives tasks to workers, and again to others where one fails or is slow; it starts them when
    there is a first task.

    Args:
        workers: where they run.
        count: how many.
        terms: on which, unless tasks have their own; without limits these are `START_SECONDS`, and
            for a sample `HUNG_FACTOR` times as long as others take.
        alike: tasks take about as long as one another; where they do not, none is too slow.

    Attributes:
        counts: what happened so far.
    """

    def __init__(
        self, workers: Workers, count: int, terms: Terms = DEFAULT_TERMS, alike: bool = True
    ) -> None:
        self.counts = Counts()
        self._workers, self._terms, self._alike = workers, terms, alike
        self._begun = False
        self._unheard: deque[tuple[int, Message]] = deque()
        self._heard_at = self._looked_at = 0.0
        self._starting: dict[int, float] = {}
        self._idle: set[int] = set()
        self._single: set[int] = set()
        self._given: dict[int, deque[_Attempt]] = {}
        self._places: dict[int, str] = {}
        self._lost: deque[tuple[_Attempt, Any]] = deque()
        self._failures_in_a_row = [0] * count
        self._seconds: deque[float] = deque(maxlen=RECENT_TASKS)
        self._usual = inf

    def progress(self) -> WorkerProgress | None:
        """The workers right now; None before they have a first task."""
        if not self._begun:
            return None
        counts = self.counts
        return WorkerProgress(
            len(self._failures_in_a_row) - len(counts.left_out),
            len(self._given),
            sum(counts.measured.values()),
            sum(counts.failures.values()),
        )

    def show(self, figures: Mapping[str, float]) -> None:
        """See `Workers.show`."""
        self._workers.show(figures)

    def ready(self, seconds: float) -> int:
        """Start the workers, and wait for so many seconds at most until all are ready; the number
        that are.

        Raises:
            NoWorkers, SituateError: see `answers`.
        """
        self._begin()
        until = time.monotonic() + seconds
        while self._starting and time.monotonic() < until:
            self._listen()
            while self._unheard:
                self._hear(*self._unheard.popleft())
            self._end_late_ones()
        return len(self._idle)

    def answers(
        self, tasks: Sequence[Work], terms: Terms | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Yields the number of each task, with its value, as the answers come. Tasks may be added
        while there are some. What is not waited for to its end is forgotten.

        Args:
            terms: of these tasks.

        Raises:
            NoWorkers: none is left.
            SituateError: several failed at one task, or one has another version.
            Exception: the one that was raised at a task.
        """
        if tasks:
            self._begin()
        batch = _Batch(tasks, terms or self._terms)
        try:
            batch.grow()
            while batch.unanswered:
                self._give(batch)
                self._listen()
                while self._unheard:
                    answered = self._hear(*self._unheard.popleft())
                    if answered is not None and answered[0].batch is batch:
                        yield answered[0].number, answered[1]
                self._end_late_ones()
                while self._lost:
                    given, value = self._lost.popleft()
                    if given.batch is batch:
                        yield given.number, value
                batch.grow()
        finally:
            batch.unanswered.clear()

    def close(self) -> None:
        """End all workers."""
        self._workers.close()

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            for worker in range(len(self._failures_in_a_row)):
                self._start(worker)

    def _listen(self) -> None:
        """Take the messages that have come. Who is late is judged by this moment: what the caller
        does with an answer may take long, and others answer meanwhile."""
        self._unheard.extend(self._workers.wait(0 if self._unheard else TICK_SECONDS))
        self._heard_at = time.monotonic()

    def _start(self, worker: int) -> None:
        self._workers.start(worker)
        self._starting[worker] = time.monotonic()

    def _give(self, batch: _Batch) -> None:
        """Give every idle worker a task, and where these are short those that have one a second."""
        for worker in sorted(self._idle):
            number = self._next(batch, worker)
            if number is None:
                number = self._slow_task(batch, worker)
            if number is None:
                continue
            self._give_one(worker, _Attempt(batch, number, time.monotonic()))
            self._idle.remove(worker)
        if self._usual < SHORT_SECONDS:
            self._give_second(batch)

    def _give_second(self, batch: _Batch) -> None:
        """Nobody is left waiting in the end: the last tasks go to whoever is idle first."""
        for worker in sorted(self._single):
            if len(batch.waiting) <= len(self._failures_in_a_row):
                return
            number = self._next(batch, worker)
            if number is not None:
                self._give_one(worker, _Attempt(batch, number, inf))

    def _give_one(self, worker: int, given: _Attempt) -> None:
        self._workers.give(worker, given.task)  # where it raises, nothing was given
        queue = self._given.setdefault(worker, deque())
        queue.append(given)
        self._count_given(worker)

    def _count_given(self, worker: int) -> None:
        """Keep `_single`, the workers that have one task."""
        (self._single.add if len(self._given[worker]) == 1 else self._single.discard)(worker)

    def _next(self, batch: _Batch, worker: int) -> int | None:
        """A task that nobody has, if there is one that the worker may take."""
        # One that a worker failed at may meanwhile be answered by another, which had it too.
        while batch.waiting and batch.waiting[0] not in batch.unanswered:
            batch.waiting.popleft()
        for position, number in enumerate(batch.waiting):
            if number in batch.unanswered and self._may_take(worker, batch.tasks[number]):
                del batch.waiting[position]
                return number
        return None

    def _may_take(self, worker: int, task: Work) -> bool:
        """True unless the task is to be done elsewhere, and somebody is there or may yet be."""
        avoid = task.avoid if isinstance(task, Task) else ""
        if not avoid or self._places.get(worker) != avoid:
            return True
        others = set(range(len(self._failures_in_a_row))) - self.counts.left_out.keys()
        return all(self._places.get(other) == avoid for other in others)

    def _slow_task(self, batch: _Batch, worker: int) -> int | None:
        """A task of a worker that takes long for the one it began, and which no other was given."""
        late = [queue for queue in self._given.values() if self._is_late(queue[0])]
        if not late:
            return None
        given = [each for queue in self._given.values() for each in queue if each.batch is batch]
        numbers = [each.number for each in given]
        for each in (each for queue in late for each in queue):
            once = each.batch is batch and each.wanted and numbers.count(each.number) == 1
            if once and self._may_take(worker, each.task):
                self.counts.again += 1
                return each.number
        return None

    def _is_late(self, given: _Attempt) -> bool:
        """True where another may do it too."""
        taken = self._heard_at - given.since
        return taken > self._late(given.task, SLOW_FACTOR, SLOW_SECONDS)

    def _late(self, task: Work, factor: float, least: float) -> float:
        """Seconds after which it is late with a task; infinite until others were answered."""
        return max(least, factor * self._usual * len(task))

    def _hear(self, worker: int, said: Message) -> tuple[_Attempt, Any] | None:
        """Take what a worker says; its task, with its value, where that is new."""
        match said:
            case Hello():
                self._greet(worker, said)
            case Ready():
                self._starting.pop(worker)
                self._places[worker] = said.place
                self._idle.add(worker)
            case Unready():
                self._end(worker, said.reason)
            case Failure():
                self._fail(worker, said.reason)
            case Answer():
                return self._take(worker, said)
        return None

    def _greet(self, worker: int, hello: Hello) -> None:
        if hello.version != VERSION:
            raise SituateError(
                f"worker {worker} on {hello.host!r} has situate {hello.version}, and this is "
                f"{VERSION}: install the same on both"
            )
        self._workers.equip(worker)

    def _take(self, worker: int, answer: Answer) -> tuple[_Attempt, Any] | None:
        if worker not in self._given:  # it cannot unpack what it was given, or not open it
            assert answer.error is not None
            raise answer.error
        given = self._ended(worker)
        self._failures_in_a_row[worker] = 0
        if not given.wanted:
            return None
        if answer.error is not None:
            raise answer.error
        if self._alike:
            self._seconds.append((self._heard_at - given.since) / len(given.task))
            self._usual = statistics.median(self._seconds)
        given.batch.unanswered.remove(given.number)
        measured = self.counts.measured
        measured[worker] = measured.get(worker, 0) + len(given.task)
        return given, answer.value

    def _ended(self, worker: int) -> _Attempt:
        """The task that a worker ended; it began its next one, or is idle."""
        queue = self._given[worker]
        given = queue.popleft()
        self._count_given(worker)
        if queue:
            queue[0].since = self._heard_at
        else:
            del self._given[worker]
            self._idle.add(worker)
        return given

    def _end_late_ones(self) -> None:
        if self._heard_at - self._looked_at < TICK_SECONDS:
            return
        self._looked_at = self._heard_at
        start_limit = self._terms.start_limit or START_SECONDS
        for worker, since in list(self._starting.items()):
            if self._heard_at - since > start_limit:
                self._end(
                    worker,
                    f"did not start within {start_limit:g} s: its machine is busy, or the "
                    "cluster has fewer free CPUs than there are workers",
                )
        for worker, queue in list(self._given.items()):
            limit = self._late(queue[0].task, HUNG_FACTOR, HUNG_SECONDS)
            terms = queue[0].batch.terms
            if terms.limit is not None:
                limit = terms.limit * len(queue[0].task)
            if self._heard_at - queue[0].since > limit:
                self._end(worker, f"did not answer within {limit:.3g} s")

    def _end(self, worker: int, reason: str) -> None:
        self._workers.stop(worker)
        self._fail(worker, reason)

    def _fail(self, worker: int, reason: str) -> None:
        """Start a worker that failed again, unless it does so all the time; others take over."""
        self._starting.pop(worker, None)
        self._idle.discard(worker)
        self._single.discard(worker)
        self.counts.failures[worker] = self.counts.failures.get(worker, 0) + 1
        queue = self._given.pop(worker, deque())
        while queue:
            given = queue.pop()
            if given.wanted and queue:  # it did not begin, and is no failure
                given.batch.waiting.appendleft(given.number)
            elif given.wanted:
                self._fail_task(given, reason)
        self._failures_in_a_row[worker] += 1
        if self._failures_in_a_row[worker] < MAX_WORKER_FAILURES:
            self._start(worker)
            return
        self.counts.left_out[worker] = reason
        if len(self.counts.left_out) == len(self._failures_in_a_row):
            raise NoWorkers(f"no worker is left; the last, worker {worker}, {reason}")
        warnings.warn(
            f"worker {worker} is left out after {MAX_WORKER_FAILURES} failures; the last: it {reason}",
            stacklevel=2,
        )

    def _fail_task(self, given: _Attempt, reason: str) -> None:
        batch, tries = given.batch, given.batch.terms.tries
        batch.failures[given.number] += 1
        if batch.failures[given.number] < tries:
            self.counts.again += 1
            batch.waiting.appendleft(given.number)
            return
        said = f"{tries} workers failed at it, the last one" if tries > 1 else "its worker"
        if batch.terms.lost is None:
            raise SituateError(f"{given.task.name}: {said} {reason}")
        batch.unanswered.remove(given.number)
        self._lost.append((given, batch.terms.lost(f"{said} {reason}")))
