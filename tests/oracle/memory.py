"""Peak memory, taken literally from docs/execution-model.md."""

from __future__ import annotations

from collections.abc import Iterator

from tests.oracle.case import Case, Move
from tests.oracle.times import Times


def peaks(case: Case, times: Times) -> list[int]:
    """Largest bytes in use on each device, by the memory rules of the problem."""
    persistent = [0 for _ in case.devices]
    for op in case.ops:
        persistent[case.device[op]] += int(case.problem.persistent[op])
    rule = case.problem.rules.memory
    if rule == "persistent":
        return persistent
    return (
        _peaks_by_step(case, times, persistent)
        if rule == "step"
        else _in_time(case, times, persistent)
    )


def _in_time(case: Case, times: Times, persistent: list[int]) -> list[int]:
    """Use grows only where something starts to live, so those instants hold the peak."""
    peak = list(persistent)
    lives = [life for life in _lives(case, times) if life[1] < life[2]]
    for device, instant, _, _ in lives:
        use = sum(
            size
            for where, birth, death, size in lives
            if where == device and birth <= instant < death
        )
        peak[device] = max(peak[device], persistent[device] + use)
    return peak


def _lives(case: Case, times: Times) -> Iterator[tuple[int, float, float, int]]:
    """(device, birth, death, bytes) of every workspace and of every copy of a tensor."""
    for op in case.ops:
        workspace = int(case.problem.workspace[op])
        yield case.device[op], times.op_start[op], times.op_end[op], workspace
    for t in case.tensors:
        producer, home, size = case.producer[t], case.home(t), int(case.problem.size[t])
        last = [times.op_end[producer]]
        last += [times.op_end[c] for c in case.consumers_on(t, home)]
        last += [end for (tensor, _), end in times.move_end.items() if tensor == t]
        if case.problem.output[t]:
            last.append(times.makespan)
        if not case.problem.resident[t]:
            yield home, times.op_start[producer], max(last), size
    for move in case.moves:
        used = [times.op_end[c] for c in case.consumers_on(move.tensor, move.target)]
        size = int(case.problem.size[move.tensor])
        yield move.target, times.move_start[move.key], max(used), size


def _peaks_by_step(case: Case, times: Times, persistent: list[int]) -> list[int]:
    """REGAL's measure: after every op and transfer, in the order in which they were taken."""
    use, peak = list(persistent), list(persistent)
    waiting = {(t, case.home(t)): _users_at_home(case, t) for t in case.tensors}
    waiting |= {m.key: set(case.consumers_on(m.tensor, m.target)) for m in case.moves}
    alive: set[tuple[int, int]] = set()
    for item in times.sequence:
        device = item.target if isinstance(item, Move) else case.device[item]
        born = {item.key} if isinstance(item, Move) else _born(case, item)
        workspace = 0 if isinstance(item, Move) else int(case.problem.workspace[item])
        alive |= born
        use[device] += sum(int(case.problem.size[t]) for t, _ in born) + workspace
        peak[device] = max(peak[device], use[device])
        use[device] -= workspace
        for users in waiting.values():
            users.discard(item.key if isinstance(item, Move) else item)
        for copy in [c for c in alive if not waiting[c]]:
            alive.remove(copy)
            use[copy[1]] -= int(case.problem.size[copy[0]])
    return peak


def _users_at_home(case: Case, tensor: int) -> set[int | tuple[int, int]]:
    users: set[int | tuple[int, int]] = set(case.consumers_on(tensor, case.home(tensor)))
    return users | {move.key for move in case.moves if move.tensor == tensor}


def _born(case: Case, op: int) -> set[tuple[int, int]]:
    return {(t, case.device[op]) for t in case.produced[op] if not case.problem.resident[t]}
