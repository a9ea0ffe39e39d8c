from collections.abc import Sequence
from typing import Annotated, overload

import numpy
from numpy.typing import NDArray


class Ops:
    """
    The n ops of a problem, in u colocation units, on d devices.

    seconds: (n, d), infinite where an op cannot run.
    persistent, workspace: (n,) bytes for the whole step, and while the op runs.
    order: (n,) a topological order.
    unit: (n,) the colocation unit of every op.
    allowed: (u, d), 1 where a unit may run.
    """

    def __init__(self, *, seconds: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], persistent: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], workspace: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], unit: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], allowed: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

class Tensors:
    """
    The m tensors of a problem, and who reads them.

    size: (m,) bytes.
    producer: (m,) the op that produces a tensor.
    consumer_start, consumers: (m + 1,), (e,) the ops that read tensor t are
        consumers[consumer_start[t]:consumer_start[t + 1]].
    own_seconds: (m,) seconds of a transfer, NaN where size and link decide.
    resident: (m,) 1 where the bytes are among its producer's persistent ones.
    output: (m,) 1 where the tensor is kept to the end of the step.
    """

    def __init__(self, *, size: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], producer: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], consumer_start: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], consumers: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], own_seconds: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], resident: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], output: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

class Devices:
    """
    The d devices of a problem and the links between them.

    capacity: (d,) bytes.
    pays: (d,) 1 where a device pays for its transfers, under atomic rules.
    latency, bandwidth: (d, d) seconds, bytes a second.
    channel: (d, d) the channel that a pair of devices uses, -1 on the diagonal.
    """

    def __init__(self, *, capacity: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], pays: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], latency: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], bandwidth: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], channel: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

class Rules:
    """
    The rules of the execution model.

    blocking: whether a transfer occupies its sender and its receiver.
    contention: whether transfers of one channel wait for one another.
    signals: whether tensors of size zero without own seconds occupy nothing.
    atomic: whether a device runs all its ops as one call (dnn-partitioning).
    memory: the measure of memory: time, step or persistent.
    synchronisation: seconds added to every transfer.
    """

    def __init__(self, *, blocking: bool, contention: bool, signals: bool, atomic: bool, memory: str, synchronisation: float) -> None: ...

class Problem:
    """A placement problem, of which the core keeps a copy."""

    def __init__(self, *, ops: Ops, tensors: Tensors, devices: Devices, rules: Rules) -> None: ...

def makespans(problem: Problem, placement: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], priority: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], transfer_priority: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)] | None, decoder: str, threads: int) -> NDArray[numpy.float64]:
    """
    Makespans (k,) of k decisions, as by evaluate, without the time that peaks take.
    """

def evaluate(problem: Problem, placement: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], priority: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], transfer_priority: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)] | None, decoder: str, threads: int) -> tuple[NDArray[numpy.float64], NDArray[numpy.int64]]:
    """
    Makespans (k,) and peaks (k, d) in bytes of k decisions.

    placement, priority: (k, n).
    transfer_priority: (k, m, d), or None for the best consumer's priority.
    decoder: eager or serial.
    """

def schedule(problem: Problem, placement: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], priority: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], transfer_priority: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)] | None, decoder: str) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.int32], NDArray[numpy.int32], NDArray[numpy.int32], NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.int32], float, NDArray[numpy.int64]]:
    """
    The schedule of one decision: start and end (n,) of the ops; tensor, source, target,
    start and end (t,) of the transfers; all items but signals (i,) in the order in which they were
    taken, transfers counted from n on; makespan; peaks (d,) in bytes.

    placement, priority: (n,).
    transfer_priority: (1, m, d), or None.
    """

def blocking_transfers(problem: Problem, placement: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[NDArray[numpy.int32], NDArray[numpy.int32], NDArray[numpy.int32]]:
    """
    The transfers of a placement (n,) whose ops go in a topological order (n,), blocking and no
    signals, in their own order: tensor, target device and the place (k,) in the order of the op that
    each is just before. One that takes no time goes with any that its devices stop for.
    """

def atomic_calls(problem: Problem, placement: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[float, NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64]]:
    """
    The schedule of a placement (n,) under atomic rules: makespan, begin and load (d,) of the
    devices' calls, and when the ops' results are there (n,).
    """

def best_item_order(problem: Problem, placement: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], goal: str, *, excess: int, value: float, known: float, steps: int, seconds: float) -> tuple[bool, int, NDArray[numpy.int32], tuple[NDArray[numpy.int32], NDArray[numpy.int32], NDArray[numpy.int32]]]:
    """
    The best order of a placement's ops and transfers, where transfers are blocking.

    Whether there is no better one, the items that were tried, and the order (n,) of ops with tensors,
    targets and places (k,) of transfers, as `blocking_transfers` has them; without ops where there is no
    order of a score below (excess, value).

    goal: `time`, `memory`, or `fit` for the fewest bytes above capacities at a value that is known.
    steps, seconds: items that may be tried, and when to end.
    """

class OutOfTime(Exception):
    pass

def without_data(problem: Problem, enters: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> NDArray[numpy.uint8]:
    """
    (n,) 1 for each op that no data reaches.

    enters: (n,) 1 for ops by which data enters, of those that read nothing.
    """

def first_use(problem: Problem, without_data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], place: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float64]:
    """
    (n,) the place at which each op is first needed.

    without_data: (n,) 1 for ops that are needed where their first reader is.
    place: (n,) of each op in an order.
    """

def fill_in_turn(problem: Problem, ops: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], room: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], turn: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> NDArray[numpy.int32]:
    """
    (units,) the device of each unit, where one device after the other is filled.

    ops: in which order units come.
    weight: (units,) of each unit.
    room: (d,) weight that each device takes.
    turn: devices, the first to be filled first.
    """

def upward_rank(problem: Problem) -> NDArray[numpy.float64]:
    """Upward ranks (n,) in seconds (HEFT, Eq. 8)."""

def heft(problem: Problem, room: float, seconds: float = float('inf')) -> tuple[NDArray[numpy.int32], NDArray[numpy.int32]]:
    """
    Placement (n,) and order (n,) by HEFT, which fills the share `room` of memory at most.

    Raises OutOfTime after so many seconds.
    """

def etf(problem: Problem, room: float, seconds: float = float('inf')) -> tuple[NDArray[numpy.int32], NDArray[numpy.int32]]:
    """
    Placement (n,) and order (n,) by ETF, which fills the share `room` of memory at most.

    Raises OutOfTime after so many seconds.
    """

def memory_constrained(problem: Problem, room: float, *, preferred: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], favourite: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], seconds: float = float('inf')) -> tuple[NDArray[numpy.int32], NDArray[numpy.int32]]:
    """
    Placement (n,) and order (n,) by m-ETF, or by m-SCT where ops have favourite children.

    room: share of memory that may be filled.
    preferred: (d,) 1 for the devices that take all that they can.
    favourite: (n,) an op, or -1.
    seconds: OutOfTime is raised after so many.
    """

class PlacedOrders:
    """List schedules of one placement."""

    def order(self, turn: float, path: float, reserved: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> NDArray[numpy.int32]:
        """
        Order (n,) in which ops start.

        turn, path: weights of an early turn, and of the seconds from an op to the end of the step.
        reserved: (d,) bytes that are left free where they can be.
        """

    @property
    def fits(self) -> bool:
        """Whether the ops fit in memory one after the other, in their turns."""

def make_placed_orders(problem: Problem, placement: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], line: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> PlacedOrders:
    """
    List schedules of a placement (n,); `line` (n,) is a topological order.
    """

class Annealers:
    """Independent chains of annealing over placement and order."""

    def run(self, temperature: float, evaluations: int, seconds: float, threads: int) -> None:
        """So many steps of every chain, fewer after so many seconds."""

    def best(self, chain: int) -> tuple[bool, float, NDArray[numpy.int32], NDArray[numpy.int32], tuple[NDArray[numpy.int32], NDArray[numpy.int32], NDArray[numpy.int32]]]:
        """
        Whether a chain's best plan fits memory, its cost, placement (n,) and order (n,); and, where
        a transfer is early, the tensors, targets and places (k,) of all, as `blocking_transfers` has them.
        """

    def restart(self, chain: int, placement: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], transfers: tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]] | None = None) -> None:
        """
        Continues a chain from another plan (n,), (n,), where it says so with its transfers.
        """

    def typical_change(self, evaluations: int) -> float:
        """
        The median absolute change of cost by so many moves of the first chain.
        """

    def move_blocks(self, start: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], units: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], turns: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], every: int) -> None:
        """
        Moves a block of units in one step of `every`.

        start, units: (b + 1,), (e,) block i has units[start[i]:start[i + 1]].
        turns: (t,) blocks; one is drawn as often as it is here.
        """

    @property
    def evaluations(self) -> int: ...

def make_annealers(problem: Problem, goal: str, seed: int, count: int, placement: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], single_moves: bool = False) -> Annealers:
    """
    Chains that start from one plan (n,), (n,). The goal is time, memory or shortfall,
    which is the bytes above all capacities in sum.

    single_moves: a step gives one unit another device or one op another place, and nothing else.
    """

class Justifications:
    """Independent chains of justification."""

    def run(self, evaluations: int, seconds: float, threads: int) -> None:
        """Lists so many plans in every chain, fewer after so many seconds."""

    def best(self, chain: int) -> tuple[bool, float, NDArray[numpy.int32], NDArray[numpy.int32]]:
        """
        Whether a chain's best plan fits memory, its cost, placement (n,) and order (n,); none has an op
        before the chain has run.
        """

    @property
    def evaluations(self) -> int: ...

def make_justifications(problem: Problem, seed: int, count: int) -> Justifications:
    """Chains that begin with the plan of HEFT."""

class LoadAnnealers:
    """Independent chains of annealing of the period."""

    def run(self, temperature: float, evaluations: int, seconds: float, threads: int) -> None:
        """So many steps of every chain, fewer after so many seconds."""

    def best(self, chain: int) -> tuple[bool, float, NDArray[numpy.int32]]:
        """
        Whether a chain's best placement fits memory, its period, and the placement (n,).
        """

    def restart(self, chain: int, placement: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Continues a chain from another placement (n,)."""

    def weigh(self, chain: int, held: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], capacity: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """
        From now on ops hold so many bytes (n,) and devices have room for so many (d,).
        """

    def split(self, devices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], step: int) -> None:
        """
        Restarts the first chain from the best split of the line into contiguous pieces.

        devices: (k,) that take the pieces, in this order.
        step: units of which the pieces are multiples.
        """

    @property
    def evaluations(self) -> int: ...

def make_load_annealers(problem: Problem, seed: int, count: int, placement: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], line: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], single_moves: bool = False) -> LoadAnnealers:
    """
    Chains that start from one placement (n,); `line` (u,) orders the units along the
    pipeline.

    single_moves: a step gives one unit another device, and nothing else.
    """

def heavy_path_order(problem: Problem, backwards: bool) -> NDArray[numpy.int32]:
    """
    Topological order (n,) by depth along the heaviest paths.

    backwards: found from the end of the step.
    """

def regrouped_order(problem: Problem, order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], *, target: int, sets: int, seconds: float) -> NDArray[numpy.int32]:
    """
    Topological order (n,) that uses no more bytes at its fullest moment on one device.

    order: (n,) a topological one.
    target: bytes of tensors and workspaces that are few enough.
    sets, seconds: sets of chunks of ops to look at, and when to end.
    """

def least_order_peak(problem: Problem, sets: int) -> int | None:
    """
    Bytes of tensors and workspaces at the fullest moment of the best order on one device.

    None where there are more than 64 ops, or so many sets of them are not enough to prove it.
    """

def key_count(problem: Problem) -> int:
    """
    Keys of a chromosome: n x d affinities, n priorities, and t x d of tensors that are sent.
    """

class Brkga:
    """
    Populations of so many chromosomes each, which are yet to be drawn.

    goal: time or memory.
    decoder: eager or serial.
    elite_bias: (keys,) the probability that a child has its elite's key.
    alpha, beta: (keys,) of the beta distributions that mutants are drawn from.
    """

    def __init__(self, *, problem: Problem, goal: str, decoder: str, seed: int, members: int, elites: int, mutants: int, populations: int, elite_bias: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], alpha: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], beta: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def begin_with(self, placement: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """
        Puts a decision (n,), (n,) into the first generation, before anything has run.
        """

    def run(self, evaluations: int, seconds: float, threads: int) -> None:
        """Evaluates so many chromosomes more, fewer after so many seconds."""

    def best(self) -> tuple[int, float, NDArray[numpy.int32], NDArray[numpy.float32], NDArray[numpy.float32]]:
        """
        Of the best chromosome: bytes beyond the capacities, value, placement (n,), priorities (n,) and transfer priorities (m, d).
        """

    def population(self) -> tuple[NDArray[numpy.float32], NDArray[numpy.int64], NDArray[numpy.float64]]:
        """
        Keys (k, keys), bytes beyond the capacities (k,) and values (k,) of the last complete generation, of each population the best first.
        """

    def expectation(self) -> tuple[NDArray[numpy.float32], NDArray[numpy.float32]]:
        """
        Of the last complete generation: shares (n, d) of the chromosomes that put an op on a device, and mean places (n,) in the order, from 0 to 1.
        """

    @property
    def evaluations(self) -> int: ...

    @property
    def generation(self) -> int: ...

class UnitGraph:
    """
    The u units of a problem and what flows between them.

    start, neighbour, bytes: (u + 1,), (e,), (e,) compressed rows, symmetric and without loops: unit i
        exchanges bytes[k] with neighbour[k] for k in start[i] to start[i + 1].
    seconds, persistent: (u,) work and bytes of a unit.
    capacity: (d,) bytes.
    allowed: (u, d), 1 where a unit may run.
    """

    def __init__(self, *, start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], neighbour: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], bytes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], seconds: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], persistent: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], capacity: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], allowed: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

def coarsen(graph: UnitGraph, *, counts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], fine: int, most: float) -> NDArray[numpy.int64]:
    """
    Labels (c, u) of c partitions into counts (c,) groups, the same label for units of one
    group.

    fine: groups of the partition that all others are made of.
    most: seconds of a group, in averages over groups, that none exceeds where that can be.
    """

def bisect(graph: UnitGraph, *, side: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], share: float) -> NDArray[numpy.int8]:
    """
    Sides (u,), 0 or 1, of units between which few bytes flow, by Kernighan and Lin.

    side: (u,) -1 for units that are free to move, 0 or 1 for those that are not, 2 for those left out.
    order: (u,) in which free units are put on side 0 at first.
    share: of the units' seconds, what side 0 is to have.
    """

class Dependencies:
    """
    Which of n ops wait for which.

    before, after: (e,), (e,) an op and one that waits for it.
    orders: (k, n) some topological orders, at least one.
    """

    def __init__(self, *, before: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], after: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], orders: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

class HeldTensors:
    """
    The m tensors that count, and who reads them.

    size, producer: (m,) bytes, and the op that makes it.
    edge_tensor, edge_consumer: (e,), (e,) a tensor and an op that reads it.
    output: (m,) 1 where the tensor is kept to the end of the step.
    """

    def __init__(self, *, size: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], producer: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], edge_tensor: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], edge_consumer: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], output: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

def least_live(dependencies: Dependencies, tensors: HeldTensors, *, workspace: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], runs: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], work: int, seconds: float) -> int:
    """
    Bytes that are live at once in every schedule, while some op runs.

    workspace: (n,) bytes of an op while it runs.
    runs: (n,) 1 for the ops that count as running.
    work, seconds: edges of networks to look at, and when to end; fewer give fewer bytes.
    """

def longest_paths(problem: Problem, *, free: bool) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]:
    """
    Seconds (n, d), (n, d) before an op begins and after it ends on a device.

    Every op on the way runs where the path is shortest; infinite where an op may not run.

    free: whether transfers take no time.
    """

def with_joins(problem: Problem, head: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], tail: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], *, work: int, seconds: float) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]:
    """
    Such seconds that are no less where the results of several ops meet.

    head, tail: (n, d), (n, d) of `longest_paths`.
    work, seconds: edges to look at, and when to end; fewer raise fewer of them.
    """

def parted_paths(problem: Problem, head: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], tail: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float64]:
    """
    Seconds (e,) of the longest path over each of the edges to consumers.

    Their ops are on the two devices where that is shortest; infinite where they have to share one.

    head, tail: (n, d), (n, d) seconds before an op begins and after it ends on a device.
    """

class Flags:
    """Counters in an array (f,) that several processes map."""

    def post(self, index: int, value: int) -> None:
        """Sets a counter and wakes all processes that wait for it."""

    def wait(self, index: int, value: int, seconds: float) -> bool:
        """
        Waits until a counter has reached a value; False if it has not after so many seconds.
        """

def make_flags(array: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], spin: float = 0.0) -> Flags:
    """Counters of an array (f,); a wait spins for the first `spin` seconds."""

@overload
def additive_scores(queries: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], keys: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], v: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int) -> NDArray[numpy.float32]: ...

@overload
def additive_scores(queries: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], keys: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int) -> NDArray[numpy.float64]:
    """
    Additive scores (b, s, g) of queries (b, s, a) and keys (b, g, a), with weights v (a,).
    """

@overload
def additive_gradients(queries: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], keys: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], v: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], d_scores: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], threads: int) -> tuple[NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.float32]]: ...

@overload
def additive_gradients(queries: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], keys: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], d_scores: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], threads: int) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64]]:
    """Gradients by queries, keys and v, from that by the scores (b, s, g)."""

@overload
def sample_groups(*, states: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], bias: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, trust: float, m: int, seed: int, noise: float, threads: int) -> NDArray[numpy.int64]: ...

@overload
def sample_groups(*, states: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], bias: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, trust: float, m: int, seed: int, noise: float, threads: int) -> NDArray[numpy.int64]:
    """
    Groups (m, u) drawn from the softmax of states (u, h) weight (g, h) + bias (g,).
    """

@overload
def group_gradients(*, states: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], bias: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, trust: float, groups: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int) -> tuple[float, NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.float32]]: ...

@overload
def group_gradients(*, states: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], bias: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, trust: float, groups: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int) -> tuple[float, NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64]]:
    """
    The weighted log-likelihood of groups (m, u), and its gradients by states, weight, bias.
    """

@overload
def lstm_forward(recurrent: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], projected: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], hidden: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], cell: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], threads: int) -> tuple[NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.float32]]: ...

@overload
def lstm_forward(recurrent: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], projected: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], hidden: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], cell: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], threads: int) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64]]:
    """
    Gates (T, k, 4h), cells and hidden states (T, k, h) of a layer, from its input projections (T, k, 4h) and first states (k, h).
    """

@overload
def lstm_backward(recurrent: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], cell: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], gate: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], cells: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], d_hidden: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], d_last_cell: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], threads: int) -> tuple[NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.float32]]: ...

@overload
def lstm_backward(recurrent: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], cell: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], gate: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], cells: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], d_hidden: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], d_last_cell: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], threads: int) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64]]:
    """
    Gradients by input projections (T, k, 4h) and first states (k, h), from those by the hidden states (T, k, h) and the last cell (k, h).
    """

class SamplerWeights:
    """
    Weights of a decoder LSTM with attention.

    All arrays of a sampler are float32, or all float64.

    embedding: (d + 1, 4h) the first layer's input projection of a device; row d: of none.
    recurrent: (4h, h) of every layer.
    inputs, biases: (4h, h), (4h,) of every layer but the first.
    query, v: (a, h), (a,) of an additive score; None for dot products.
    head: (d, 2h) maps a state and its context to logits.
    """

    def __init__(self, *, embedding: Annotated[NDArray, dict(shape=(None, None), order='C', device='cpu', writable=False)], recurrent: Sequence[Annotated[NDArray, dict(shape=(None, None), order='C', device='cpu', writable=False)]], inputs: Sequence[Annotated[NDArray, dict(shape=(None, None), order='C', device='cpu', writable=False)]], biases: Sequence[Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)]], query: Annotated[NDArray, dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, v: Annotated[NDArray, dict(shape=(None,), order='C', device='cpu', writable=False)] | None, head: Annotated[NDArray, dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

class SamplerInputs:
    """
    Inputs of k samples of g groups on d devices.

    outputs, keys: (b, g, h), (b, g, a) the encoded groups, b = 1 for all samples or b = k.
    hidden, cell: (layers, k, h) states before the first group.
    own: (k, g, d) added to the head's outputs.
    gumbel: (k, g, d) Gumbel noise, minus infinity where a device is not allowed.
    noise: (k, g, d) added to the logits, in root mean squares of these; or None.
    """

    def __init__(self, *, outputs: Annotated[NDArray, dict(shape=(None, None, None), order='C', device='cpu', writable=False)], keys: Annotated[NDArray, dict(shape=(None, None, None), order='C', device='cpu', writable=False)], hidden: Annotated[NDArray, dict(shape=(None, None, None), order='C', device='cpu', writable=False)], cell: Annotated[NDArray, dict(shape=(None, None, None), order='C', device='cpu', writable=False)], own: Annotated[NDArray, dict(shape=(None, None, None), order='C', device='cpu', writable=False)], gumbel: Annotated[NDArray, dict(shape=(None, None, None), order='C', device='cpu', writable=False)], noise: Annotated[NDArray, dict(shape=(None, None, None), order='C', device='cpu', writable=False)] | None) -> None: ...

def sample_devices(weights: SamplerWeights, inputs: SamplerInputs, *, temperature: float, bound: float, threads: int) -> tuple[NDArray[numpy.int64], list[tuple[NDArray, NDArray, NDArray]]]:
    """
    Devices (k, g), and gates (g, k, 4h), cells and hidden states (g, k, h) of every layer.

    temperature, bound: logits l become bound tanh(l / temperature), or l / temperature if bound is 0.
    """
