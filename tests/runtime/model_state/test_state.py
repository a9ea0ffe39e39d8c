"""The changes of a step can be undone, and a device with memory of its own mirrors the state."""

from __future__ import annotations

import functools
import itertools
import signal
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from situate.runtime.device import StepRecord  # noqa: E402
from situate.runtime.hardware import RealDevice  # noqa: E402
from situate.runtime.memory import Layout  # noqa: E402
from situate.runtime.model_state.bindings import state_values  # noqa: E402
from situate.runtime.model_state.optimizers import default_optimizer  # noqa: E402
from situate.runtime.model_state.state import (  # noqa: E402
    Common,
    Entry,
    Mirror,
    lay_out,
    rows,
    shared_places,
)
from situate.runtime.processes.messages import (  # noqa: E402
    Run,
    StepFailed,
    Store,
)
from situate.runtime.step import PlacedStep  # noqa: E402
from tests.runtime.gpus import KINDS  # noqa: E402
from tests.runtime.model_state.entries import contents, entry, same  # noqa: E402
from tests.runtime.models import MODELS  # noqa: E402
from tests.runtime.pairs import Pair  # noqa: E402
from tests.runtime.steps import (  # noqa: E402
    cut,
    program,
)


# Copies and undo.
@pytest.mark.parametrize(
    ("kind", "moments"),
    [("sgd", []), ("momentum", ["momentum_buffer"]), ("adamw", ["exp_avg", "exp_avg_sq"])],
)
def test_a_parameter_lies_beside_what_its_optimiser_keeps(kind: str, moments: list[str]) -> None:
    state = entry(torch.ones(2, 3).t(), kind)
    assert list(state.moments) == moments
    assert {(part.shape, part.stride()) for part in state.parts} == {((3, 2), (1, 3))}
    assert len(state.copies) == 1 + len(moments)
    assert all(float(moment.abs().sum()) == 0 for moment in state.moments.values())


def test_nothing_is_copied_of_what_no_step_changes() -> None:
    layout = Layout()
    [places] = lay_out(layout, [torch.ones(3)], {}, frozenset())
    state = Entry.at(places, torch.zeros(layout.nbytes, dtype=torch.uint8))
    assert (state.copies, state.moments) == ((), {})
    state.value.fill_(2.0)
    state.keep(1)
    state.undo(1)
    assert state.value.tolist() == [2.0] * 3


def change(*entries: Entry) -> None:
    """All that a step may."""
    for state in entries:
        for part in (*state.parts, state.count):
            part += 1


def test_copied_state_is_undone() -> None:
    state = entry(torch.arange(6.0).view(2, 3).t())
    change(state)
    before = contents(state)
    state.keep(4)
    change(state)
    assert not same(contents(state), before)
    state.undo(4)
    assert same(contents(state), before)


def test_only_what_was_copied_is_undone() -> None:
    state = entry(torch.zeros(6))
    state.begin(1)
    rows(state.copies[0])[:4].copy_(rows(state.value)[:4])
    state.copied(4)
    state.value[:4] = 1.0
    state.value[4:] = 5.0
    state.undo(1)
    assert state.value.tolist() == [0.0] * 4 + [5.0] * 2


def test_a_step_that_did_not_come_here_leaves_nothing_to_undo() -> None:
    state = entry(torch.zeros(6))
    state.keep(1)
    change(state)
    after = contents(state)
    state.undo(2)
    assert same(contents(state), after)


def test_undoing_twice_is_undoing_once() -> None:
    state = entry(torch.zeros(6))
    state.keep(1)
    change(state)
    for _ in range(2):
        state.undo(1)
    assert state.value.tolist() == [0.0] * 6


# Mirrors on a stand-in for a GPU.
def test_a_copy_elsewhere_is_taken_back() -> None:
    state = entry(torch.arange(3.0))
    other = state.on(torch.device("cpu"))
    change(other)
    assert state.value.tolist() == [0.0, 1.0, 2.0]
    state.take(other)
    assert same(contents(state), contents(other))
    assert state.count == 1


kinds = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def pair() -> Pair:
    return Pair("towers", functools.partial(default_optimizer, "adam"))


def apart(pair: Pair, keep: bool) -> PlacedStep:
    """Its step, on a device that works on copies."""
    device = RealDevice("apart", "cpu", 1, mirrored=True)
    return PlacedStep(cut(pair.program, 1), pair.model, pair.optimizer, [device], keep=keep)


def put_in_place(parameters: list[torch.nn.Parameter]) -> None:
    for parameter in parameters:
        parameter.data = torch.full_like(parameter, 0.1)


def from_vector(parameters: list[torch.nn.Parameter]) -> None:
    vector = torch.linspace(-0.1, 0.1, sum(parameter.numel() for parameter in parameters))
    torch.nn.utils.vector_to_parameters(vector, parameters)


def unseen(parameters: list[torch.nn.Parameter]) -> None:
    for parameter in parameters:
        parameter.data.clamp_(-0.01, 0.01)


def plainly(parameters: list[torch.nn.Parameter]) -> None:
    with torch.no_grad():
        for parameter in parameters:
            parameter.mul_(0.5)


@pytest.mark.parametrize(
    ("change", "keep"),
    [
        *((change, keep) for change in (put_in_place, from_vector) for keep in (True, False)),
        (unseen, True),
    ],
)
def test_new_parameter_data_is_trained(
    pair: Pair, change: Callable[[list[torch.nn.Parameter]], None], keep: bool
) -> None:
    with apart(pair, keep) as step:
        pair.both(step)
        for model in (pair.model, pair.copy):
            change(list(model.parameters()))
        pair.both(step)
        step.sync()
        pair.assert_same()


@pytest.mark.parametrize(("change", "keep"), [(plainly, True), (plainly, False), (unseen, True)])
def test_changes_are_saved(
    pair: Pair, change: Callable[[list[torch.nn.Parameter]], None], keep: bool
) -> None:
    with apart(pair, keep) as step:
        pair.both(step)
        step.sync()
        for model in (pair.model, pair.copy):
            change(list(model.parameters()))
        step.model.state_dict()
        pair.assert_same()
        pair.both(step)
    pair.assert_same()


def there(mirror: Mirror) -> list[torch.Tensor]:
    """The contents of the first entry that a mirror holds."""
    return [part.cpu() for part in contents(mirror.state[0])]


@kinds
def test_it_takes_over_all_that_it_holds_and_no_more(kind: str) -> None:
    host = [entry(torch.full((3,), float(number))) for number in range(2)]
    mirror = Mirror(host, here={0}, changed=[0], device=torch.device(kind))
    for copy in host:
        copy.value.add_(5.0)
        copy.count.add_(1.0)
    assert not same(there(mirror), contents(host[0]))
    mirror.load_all()
    assert same(there(mirror), contents(host[0]))
    assert mirror.state[1] is host[1]


@kinds
def test_it_takes_over_the_parts_that_are_named(kind: str) -> None:
    host = entry(torch.zeros(3))
    mirror = Mirror([host], here={0}, changed=[0], device=torch.device(kind))
    host.value.add_(1.0)
    host.count.add_(1.0)
    mirror.load([(0, 0)])
    assert mirror.state[0].value.tolist() == [1.0, 1.0, 1.0]
    assert float(mirror.state[0].count) == 0.0


@kinds
def test_returned_state_can_be_undone(kind: str) -> None:
    host = entry(torch.zeros(3))
    mirror = Mirror([host], here={0}, changed=[0], device=torch.device(kind))
    mirror.state[0].value.add_(1.0)
    mirror.store(4)
    assert host.value.tolist() == [1.0, 1.0, 1.0]
    host.undo(4)
    assert host.value.tolist() == [0.0, 0.0, 0.0]


class Stub:
    """Devices that run nothing, and bring their state back as they are told."""

    def __init__(self, store: Callable[[], None]) -> None:
        self._store = store
        self.closed = 0

    def run(self, order: Run) -> list[StepRecord]:
        return []

    def store(self, order: Store) -> None:
        self._store()

    def close(self) -> None:
        self.closed += 1


def ahead(pair: Pair, store: Callable[[], None]) -> tuple[PlacedStep, Stub]:
    """Its step on such devices, after one step."""
    device, devices = RealDevice("apart", "cpu", 1, mirrored=True), Stub(store)
    placed_step = cut(pair.program, 1)
    step = PlacedStep(
        placed_step, pair.model, pair.optimizer, [device], keep=False, start=lambda *_: devices
    )
    step(*pair.inputs)
    return step, devices


def lost() -> None:
    raise StepFailed("lost")


# Failures to return the state.
def test_state_that_is_lost_is_an_error_also_where_a_step_is_closed(pair: Pair) -> None:
    step, devices = ahead(pair, lost)
    with pytest.raises(StepFailed, match="lost"):
        step.close()
    assert devices.closed == 1
    assert step._devices is None


def test_state_that_is_lost_hides_no_error_of_the_callers(pair: Pair) -> None:
    step, devices = ahead(pair, lost)
    with pytest.raises(KeyError), step:
        raise KeyError
    assert devices.closed == 1


def test_ctrl_c_waits_until_state_is_brought_back(pair: Pair) -> None:
    """Devices that are interrupted run no more, and would seem to."""
    stored: list[bool] = []

    def interrupted() -> None:
        if not stored:
            signal.raise_signal(signal.SIGINT)
        stored.append(True)

    step, _ = ahead(pair, interrupted)
    with pytest.raises(KeyboardInterrupt):
        step.sync()
    assert stored == [True]


def test_a_failure_to_bring_state_back_says_that_some_may_be_old(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = apart(pair, keep=False)
    step(*pair.inputs)
    monkeypatch.setattr(Mirror, "store", lambda mirror, step: lost())
    with pytest.raises(StepFailed, match="the model may be updated in part"):
        step.sync()


def common(*, undone: bool) -> Common:
    """The places of a training step on two devices."""
    mapped_common, (model, *_) = program("towers", "adam"), MODELS["towers"]()
    placed_step = cut(mapped_common, 2)
    tensors = state_values(placed_step, model)
    changed = frozenset(placed_step.updated) | placed_step.overwritten
    layout, places = shared_places(placed_step, tensors, changed if undone else frozenset())
    return Common(places, torch.zeros(layout.nbytes, dtype=torch.uint8))


def span(tensor: torch.Tensor) -> tuple[int, int]:
    return tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes


# The layout of the block.
def test_nothing_lies_on_anything_else() -> None:
    mapped_common = common(undone=True)
    entries = [part for entry in mapped_common.state for part in (*entry.all_parts, *entry.copies)]
    spans = sorted(map(span, (*entries, *mapped_common.inputs, *mapped_common.results)))
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))
    begin, end = span(mapped_common.raw)
    assert begin <= spans[0][0]
    assert spans[-1][1] <= end


def test_each_channel_has_a_slot_and_a_flag_and_one_is_to_give_up() -> None:
    mapped_common = common(undone=True)
    assert len(mapped_common.slots) > 0
    assert mapped_common.flags.shape == (len(mapped_common.slots) + 1,)


def test_only_what_must_be_undone_is_copied() -> None:
    assert all(len(entry.copies) == len(entry.parts) == 3 for entry in common(undone=True).state)
    assert not any(entry.copies for entry in common(undone=False).state)
