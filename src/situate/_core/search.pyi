"""List rules, annealing, BRKGA and orders for memory."""

from typing import Annotated

import numpy
from numpy.typing import NDArray

import situate._core.problem


def best_item_order(problem: situate._core.problem.Problem, placement: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], goal: str, *, excess: int, value: float, constant: float, steps: int, seconds: float) -> tuple[bool, int, NDArray[numpy.int32], tuple[NDArray[numpy.int32], NDArray[numpy.int32], NDArray[numpy.int32]]]:
    """
    The best order of a placement's ops and transfers, where transfers are blocking.

    Whether there is no better one, the items that were tried, and the order (n,) of ops with tensors,
    targets and places (k,) of transfers, as `blocking_transfers` has them; without ops where there is no
    order of a score below (excess, value).

    goal: `time`, `memory`, or `fit` for the fewest bytes above capacities, where all orders have the value `constant`.
    steps, seconds: items that may be tried, and when to end.
    """

class OutOfTime(Exception):
    pass

def without_data(problem: situate._core.problem.Problem, enters: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> NDArray[numpy.uint8]:
    """
    (n,) 1 for each op that no data reaches.

    enters: (n,) 1 for ops by which data enters, of those that read nothing.
    """

def first_use(problem: situate._core.problem.Problem, without_data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], place: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float64]:
    """
    (n,) the place at which each op is first needed.

    without_data: (n,) 1 for ops that are needed where their first reader is.
    place: (n,) of each op in an order.
    """

def fill_in_turn(problem: situate._core.problem.Problem, ops: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], room: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], turn: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> NDArray[numpy.int32]:
    """
    (units,) the device of each unit, where one device after the other is filled.

    ops: in which order units come.
    weight: (units,) of each unit.
    room: (d,) weight that each device takes.
    turn: devices, the first to be filled first.
    """

def upward_rank(problem: situate._core.problem.Problem) -> NDArray[numpy.float64]:
    """Upward ranks (n,) in seconds (HEFT, Eq. 8)."""

def heft(problem: situate._core.problem.Problem, room: float, seconds: float = float('inf')) -> tuple[NDArray[numpy.int32], NDArray[numpy.int32]]:
    """
    Placement (n,) and order (n,) by HEFT, which fills the share `room` of memory at most.

    Raises OutOfTime after so many seconds.
    """

def etf(problem: situate._core.problem.Problem, room: float, seconds: float = float('inf')) -> tuple[NDArray[numpy.int32], NDArray[numpy.int32]]:
    """
    Placement (n,) and order (n,) by ETF, which fills the share `room` of memory at most.

    Raises OutOfTime after so many seconds.
    """

def memory_constrained(problem: situate._core.problem.Problem, room: float, *, preferred: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], favourite: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], seconds: float = float('inf')) -> tuple[NDArray[numpy.int32], NDArray[numpy.int32]]:
    """
    Placement (n,) and order (n,) by m-ETF, or by m-SCT where ops have favourite children.

    room: share of memory that may be filled.
    preferred: (d,) 1 for the devices that take all that they can.
    favourite: (n,) an op, or -1.
    seconds: OutOfTime is raised after so many.
    """

class PlacedOrders:
    """List schedules of one placement."""

    def order(self, turn: float, path: float, reserved: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], patience: float = 0.0) -> NDArray[numpy.int32]:
        """
        Order (n,) in which ops start.

        turn, path: weights of an early turn, and of the seconds from an op to the end of the step.
        reserved: (d,) bytes that are left free where they can be.
        patience: the longest wait for an op that other devices wait for and whose inputs are on their way,
        as a share of the seconds of the op that could start instead.
        """

    @property
    def fits(self) -> bool:
        """Whether the ops fit in memory one after the other, in their turns."""

def make_placed_orders(problem: situate._core.problem.Problem, placement: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], line: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> PlacedOrders:
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

    def use_power_mean(self, chain: int, use: bool) -> None:
        """
        For the goal of memory: from its next restart on, a chain adds the power mean of degree 4 of the
        devices' peaks to the largest one, or the arithmetic mean.
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

def make_annealers(problem: situate._core.problem.Problem, goal: str, seed: int, count: int, placement: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], single_moves: bool = False) -> Annealers:
    """
    Chains that start from one plan (n,), (n,). The goal is time, memory or shortfall,
    which is the bytes above all capacities in sum.

    single_moves: a step gives one unit another device or one op another place, and nothing else.
    """

class WindowSearches:
    """Independent chains of local search in a long plan, window by window."""

    def run(self, moves_an_op: float, seconds: float, threads: int) -> None:
        """
        Sweeps every chain to the end of its plan, not so far after so many seconds.

        moves_an_op: tried in one sweep.
        """

    def plan(self, chain: int) -> tuple[float, NDArray[numpy.int32], NDArray[numpy.int32]]:
        """
        The longest way in seconds through the window of a chain, its placement (n,) and order (n,).
        """

    def swept(self, chain: int) -> float:
        """Share of the sweep of a chain that is over; 0 as a sweep begins."""

    @property
    def evaluations(self) -> int: ...

def make_window_searches(problem: situate._core.problem.Problem, seed: int, count: int, placement: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], room: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> WindowSearches:
    """
    Chains that start from one plan (n,), (n,).

    room: (d,) bytes that each device has left for ops that move there.
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

def make_justifications(problem: situate._core.problem.Problem, seed: int, count: int) -> Justifications:
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

def make_load_annealers(problem: situate._core.problem.Problem, seed: int, count: int, placement: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], line: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], single_moves: bool = False) -> LoadAnnealers:
    """
    Chains that start from one placement (n,); `line` (u,) orders the units along the
    pipeline.

    single_moves: a step gives one unit another device, and nothing else.
    """

def heavy_path_order(problem: situate._core.problem.Problem, backwards: bool) -> NDArray[numpy.int32]:
    """
    Topological order (n,) by depth along the heaviest paths.

    backwards: found from the end of the step.
    """

def regrouped_order(problem: situate._core.problem.Problem, order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], *, target: int, sets: int, seconds: float) -> NDArray[numpy.int32]:
    """
    Topological order (n,) that uses no more bytes at its fullest moment on one device.

    order: (n,) a topological one.
    target: bytes of tensors and workspaces that are few enough.
    sets, seconds: sets of chunks of ops to look at, and when to end.
    """

def least_order_peak(problem: situate._core.problem.Problem, sets: int) -> int | None:
    """
    Bytes of tensors and workspaces at the fullest moment of the best order on one device.

    None where there are more than 64 ops, or so many sets of them are not enough to prove it.
    """

def key_count(problem: situate._core.problem.Problem) -> int:
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
    source, target: (e,) ops at the ends of edges; together: (e,) the probability that a chromosome
    draws or inherits the affinities of both ends together. Without edges each op is by itself.
    """

    def __init__(self, *, problem: situate._core.problem.Problem, goal: str, decoder: str, seed: int, members: int, elites: int, mutants: int, populations: int, elite_bias: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], alpha: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], beta: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], source: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], target: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], together: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

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
