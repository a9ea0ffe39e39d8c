"""Distribution of tasks to workers until each is answered once, despite failing and slow
workers."""

from __future__ import annotations

import statistics
import time
import warnings
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
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
"""Seconds for a worker to start."""

MAX_WORKER_FAILURES = 3
"""Consecutive failures after which a worker is left out."""

SLOW_FACTOR, SLOW_SECONDS = 3.0, 0.5
"""Multiple of a task's usual time, and least seconds, after which an idle worker gets it too."""

HUNG_FACTOR, HUNG_SECONDS = 20.0, 60.0
"""Multiple of a task's usual time, and least seconds, after which its worker is ended."""

RECENT_TASKS = 101
"""Number of tasks whose median time is the usual one."""

TICK_SECONDS = 0.1
"""Seconds between two checks for late workers."""

SHORT_SECONDS = 1.0
"""Usual seconds of a task below which a worker gets a second one in advance, because waiting for
this process would be a noticeable part of the time."""


@dataclass
class _Batch:
    """Tasks of one call, on the same terms."""

    tasks: Sequence[Work]
    terms: Terms
    waiting: deque[int] = field(default_factory=deque)
    failures: list[int] = field(default_factory=list)
    unanswered: set[int] = field(default_factory=set)

    def grow(self) -> None:
        """Take over tasks added to the list."""
        new = range(len(self.failures), len(self.tasks))
        self.waiting.extend(new)
        self.unanswered.update(new)
        self.failures += [0] * len(new)


@dataclass
class _Attempt:
    """A task at a worker, with its start; infinite while it waits for the task before."""

    batch: _Batch
    number: int
    since: float

    @property
    def task(self) -> Work:
        return self.batch.tasks[self.number]

    @property
    def is_unanswered(self) -> bool:
        """True until any worker answers."""
        return self.number in self.batch.unanswered


class Dispatch:
    """Assigns tasks to workers, and again to others if one fails or is slow. The first task starts
    the workers.

    Args:
        workers: the workers.
        count: their number.
        terms: default terms of tasks. Without limits, a worker has `START_SECONDS` to start, and
            `HUNG_FACTOR` times the usual time for a sample.
        alike: tasks take similar times; otherwise none is too slow.

    Attributes:
        counts: statistics so far.
    """

    def __init__(
        self, workers: Workers, count: int, terms: Terms = DEFAULT_TERMS, alike: bool = True
    ) -> None:
        self.counts = Counts()
        self._workers, self._terms, self._alike = workers, terms, alike
        self._has_begun = False
        self._messages: deque[tuple[int, Message]] = deque()
        self._listened_at = self._checked_at = 0.0
        self._starting: dict[int, float] = {}
        self._idle: set[int] = set()
        self._with_one_task: set[int] = set()
        self._attempts: dict[int, deque[_Attempt]] = {}
        self._places: dict[int, str] = {}
        self._lost_tasks: deque[tuple[_Attempt, Any]] = deque()
        self._failures_in_a_row = [0] * count
        self._seconds: deque[float] = deque(maxlen=RECENT_TASKS)
        self._usual_seconds = inf

    def progress(self) -> WorkerProgress | None:
        """The workers right now; None before the first task."""
        if not self._has_begun:
            return None
        counts = self.counts
        return WorkerProgress(
            len(self._failures_in_a_row) - len(counts.left_out),
            len(self._attempts),
            sum(counts.completed.values()),
            sum(counts.failures.values()),
        )

    def show(self, figures: Mapping[str, float]) -> None:
        """See `Workers.show`."""
        self._workers.show(figures)

    def ready(self, seconds: float) -> int:
        """Start the workers, and wait up to `seconds` until all are ready; the number that are.

        Raises:
            NoWorkers, SituateError: see `answers`.
        """
        self._begin()
        until = time.monotonic() + seconds
        while self._starting and time.monotonic() < until:
            self._listen()
            while self._messages:
                self._handle(*self._messages.popleft())
            self._end_late_workers()
        return len(self._idle)

    def answers(
        self, tasks: Sequence[Work], terms: Terms | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Yields the number and the value of each task, in order of arrival.

        The caller may add tasks as long as some are unanswered. If it stops early, the remaining
        tasks are dropped.

        Args:
            terms: of these tasks.

        Raises:
            NoWorkers: none is left.
            SituateError: several workers failed at one task, or one has another version.
            Exception: the exception that a task raised.
        """
        if tasks:
            self._begin()
        batch = _Batch(tasks, terms or self._terms)
        try:
            batch.grow()
            while batch.unanswered:
                self._assign_idle(batch)
                self._listen()
                while self._messages:
                    result = self._handle(*self._messages.popleft())
                    if result is not None and result[0].batch is batch:
                        yield result[0].number, result[1]
                self._end_late_workers()
                while self._lost_tasks:
                    attempt, value = self._lost_tasks.popleft()
                    if attempt.batch is batch:
                        yield attempt.number, value
                batch.grow()
        finally:
            # The caller may have stopped early: later answers to these tasks do not count.
            batch.unanswered.clear()

    def close(self) -> None:
        """End all workers."""
        self._workers.close()

    def _begin(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            for worker in range(len(self._failures_in_a_row)):
                self._start(worker)

    def _listen(self) -> None:
        """Fetch the messages that have arrived.

        This moment decides who is late: the caller may take long with an answer, and others answer
        meanwhile.
        """
        self._messages.extend(self._workers.wait(0 if self._messages else TICK_SECONDS))
        self._listened_at = time.monotonic()

    def _start(self, worker: int) -> None:
        self._workers.start(worker)
        self._starting[worker] = time.monotonic()

    def _assign_idle(self, batch: _Batch) -> None:
        """Assign a task to every idle worker, and a second one to busy workers if tasks are
        short."""
        for worker in sorted(self._idle):
            number = self._next_task(batch, worker)
            if number is None:
                number = self._find_slow_task(batch, worker)
            if number is None:
                continue
            self._assign(worker, _Attempt(batch, number, time.monotonic()))
            self._idle.remove(worker)
        if self._usual_seconds < SHORT_SECONDS:
            self._assign_second(batch)

    def _assign_second(self, batch: _Batch) -> None:
        """Assign second tasks, but leave the last tasks to the first idle workers."""
        for worker in sorted(self._with_one_task):
            if len(batch.waiting) <= len(self._failures_in_a_row):
                return
            number = self._next_task(batch, worker)
            if number is not None:
                self._assign(worker, _Attempt(batch, number, inf))

    def _assign(self, worker: int, attempt: _Attempt) -> None:
        self._workers.give(worker, attempt.task)  # if this raises, the worker has no task
        queue = self._attempts.setdefault(worker, deque())
        queue.append(attempt)
        self._update_with_one_task(worker)

    def _update_with_one_task(self, worker: int) -> None:
        """Update `_with_one_task`, the workers that have one task."""
        if len(self._attempts[worker]) == 1:
            self._with_one_task.add(worker)
        else:
            self._with_one_task.discard(worker)

    def _next_task(self, batch: _Batch, worker: int) -> int | None:
        """An unassigned task that the worker may take, or None."""
        # A task that failed at one worker may have been answered by another since.
        while batch.waiting and batch.waiting[0] not in batch.unanswered:
            batch.waiting.popleft()
        for position, number in enumerate(batch.waiting):
            if number in batch.unanswered and self._may_take(worker, batch.tasks[number]):
                del batch.waiting[position]
                return number
        return None

    def _may_take(self, worker: int, task: Work) -> bool:
        """False for a task to be done elsewhere, as long as a worker elsewhere exists or may
        start."""
        avoid = task.avoid if isinstance(task, Task) else ""
        if not avoid or self._places.get(worker) != avoid:
            return True
        others = set(range(len(self._failures_in_a_row))) - self.counts.left_out.keys()
        return all(self._places.get(other) == avoid for other in others)

    def _find_slow_task(self, batch: _Batch, worker: int) -> int | None:
        """A task of a late worker that no other worker has."""
        queues = self._attempts.values()
        late = [queue for queue in queues if self._is_late(queue[0])]
        if not late:
            return None
        numbers = Counter(
            attempt.number for queue in queues for attempt in queue if attempt.batch is batch
        )
        for attempt in chain.from_iterable(late):
            open_task = attempt.batch is batch and attempt.is_unanswered
            # At most two workers have a task at the same time.
            if open_task and numbers[attempt.number] == 1 and self._may_take(worker, attempt.task):
                self.counts.again += 1
                return attempt.number
        return None

    def _is_late(self, attempt: _Attempt) -> bool:
        """True if another worker may take the task too."""
        elapsed = self._listened_at - attempt.since
        return elapsed > self._late_after(attempt.task, SLOW_FACTOR, SLOW_SECONDS)

    def _late_after(self, task: Work, factor: float, least: float) -> float:
        """Seconds until a task is late; infinite before the first answers."""
        return max(least, factor * self._usual_seconds * len(task))

    def _handle(self, worker: int, message: Message) -> tuple[_Attempt, Any] | None:
        """Handle a worker's message. Returns its attempt and the value, for a new answer."""
        match message:
            case Hello():
                self._greet(worker, message)
            case Ready():
                self._starting.pop(worker)
                self._places[worker] = message.place
                self._idle.add(worker)
            case Unready():
                self._stop_worker(worker, message.reason)
            case Failure():
                self._handle_failure(worker, message.reason)
            case Answer():
                return self._accept(worker, message)
        return None

    def _greet(self, worker: int, hello: Hello) -> None:
        if hello.version != VERSION:
            raise SituateError(
                f"worker {worker} on {hello.host!r} has situate {hello.version}, and this is "
                f"{VERSION}: install the same on both"
            )
        self._workers.equip(worker)

    def _accept(self, worker: int, answer: Answer) -> tuple[_Attempt, Any] | None:
        if worker not in self._attempts:  # it could not unpack or open its evaluator
            assert answer.error is not None
            raise answer.error
        attempt = self._finish_task(worker)
        self._failures_in_a_row[worker] = 0
        if not attempt.is_unanswered:
            return None
        if answer.error is not None:
            raise answer.error
        if self._alike:
            self._seconds.append((self._listened_at - attempt.since) / len(attempt.task))
            self._usual_seconds = statistics.median(self._seconds)
        attempt.batch.unanswered.remove(attempt.number)
        completed = self.counts.completed
        completed[worker] = completed.get(worker, 0) + len(attempt.task)
        return attempt, answer.value

    def _finish_task(self, worker: int) -> _Attempt:
        """Remove the first task of a worker, which starts its next one or becomes idle."""
        queue = self._attempts[worker]
        attempt = queue.popleft()
        self._update_with_one_task(worker)
        if queue:
            # The next task of the queue began when this one ended, not when it was assigned.
            queue[0].since = self._listened_at
        else:
            del self._attempts[worker]
            self._idle.add(worker)
        return attempt

    def _end_late_workers(self) -> None:
        if self._listened_at - self._checked_at < TICK_SECONDS:
            return
        self._checked_at = self._listened_at
        start_limit = self._terms.start_limit or START_SECONDS
        for worker, since in list(self._starting.items()):
            if self._listened_at - since > start_limit:
                self._stop_worker(
                    worker,
                    f"did not start within {start_limit:g} s: its machine is busy, or the "
                    "cluster has fewer free CPUs than there are workers",
                )
        for worker, queue in list(self._attempts.items()):
            limit = self._late_after(queue[0].task, HUNG_FACTOR, HUNG_SECONDS)
            terms = queue[0].batch.terms
            if terms.limit is not None:
                limit = terms.limit * len(queue[0].task)
            if self._listened_at - queue[0].since > limit:
                self._stop_worker(worker, f"did not answer within {limit:.3g} s")

    def _stop_worker(self, worker: int, reason: str) -> None:
        # Stop first: a late answer of this process must not count any more.
        self._workers.stop(worker)
        self._handle_failure(worker, reason)

    def _handle_failure(self, worker: int, reason: str) -> None:
        """Start a failed worker again, or leave it out after repeated failures; others take over
        its tasks."""
        self._starting.pop(worker, None)
        self._idle.discard(worker)
        self._with_one_task.discard(worker)
        self.counts.failures[worker] = self.counts.failures.get(worker, 0) + 1
        queue = self._attempts.pop(worker, deque())
        while queue:
            # From the last task to the first, each put in front, so that their order stays.
            attempt = queue.pop()
            # Only the first task of the queue was running, so the failure counts against it alone.
            if attempt.is_unanswered and queue:
                attempt.batch.waiting.appendleft(attempt.number)
            elif attempt.is_unanswered:
                self._handle_task_failure(attempt, reason)
        self._failures_in_a_row[worker] += 1
        if self._failures_in_a_row[worker] < MAX_WORKER_FAILURES:
            self._start(worker)
            return
        self.counts.left_out[worker] = reason
        if len(self.counts.left_out) == len(self._failures_in_a_row):
            raise NoWorkers(f"no worker is left; the last, worker {worker}, {reason}")
        warnings.warn(
            f"worker {worker} is left out after {MAX_WORKER_FAILURES} failures; the last: it "
            f"{reason}",
            stacklevel=2,
        )

    def _handle_task_failure(self, attempt: _Attempt, reason: str) -> None:
        batch, tries = attempt.batch, attempt.batch.terms.tries
        batch.failures[attempt.number] += 1
        if batch.failures[attempt.number] < tries:
            self.counts.again += 1
            batch.waiting.appendleft(attempt.number)
            return
        prefix = f"{tries} workers failed at it, the last one" if tries > 1 else "its worker"
        if batch.terms.lost is None:
            raise SituateError(f"{attempt.task.name}: {prefix} {reason}")
        batch.unanswered.remove(attempt.number)
        self._lost_tasks.append((attempt, batch.terms.lost(f"{prefix} {reason}")))
