"""Modules whose results meet go together, near the plan and within memory."""

from __future__ import annotations

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.writers.module_devices import ModuleDevices, module_devices
from situate.writers.whole_modules import folded
from tests.report.handmade import schedule


class Net:
    """A graph in the making: ops with their module, device and inputs."""

    def __init__(self, memories: tuple[int | None, ...] = (None, None, None)) -> None:
        self.memories = memories
        self.ops: list[Op] = []
        self.devices: list[int] = []
        self.reads: dict[int, list[int]] = {}

    def op(self, module: str, device: int, *reads: int, **fields: object) -> int:
        """Add an op of a second; its number."""
        number = len(self.ops)
        result = {"seconds": {"*": 1.0}, "phase": "forward"} | fields
        self.ops.append(Op(**{"name": f"op{number}"} | result, module=module))  # type: ignore[arg-type]
        self.devices.append(device)
        for source in reads:
            self.reads.setdefault(source, []).append(number)
        return number

    def parameter(self, module: str, device: int, size: int = 10, kind: str = "parameter") -> int:
        """Add a parameter or a buffer; its number."""
        return self.op(module, device, kind=kind, persistent=size)

    def linear(self, module: str, device: int, *reads: int, size: int = 10) -> int:
        """Add a module with a parameter; the number of its result."""
        return self.op(module, device, self.parameter(module, device, size), *reads)

    def module_devices(self, memory: int | None = None) -> dict[str, int]:
        return self.result(memory).devices

    def result(self, memory: int | None = None) -> ModuleDevices:
        tensors = tuple(Tensor(f"t{j}", j, 8, tuple(to)) for j, to in self.reads.items())
        graph = Graph("g", tuple(self.ops), tensors)
        sizes = self.memories if memory is None else [memory] * 3
        devices = tuple(Device(f"gpu{i}", memory=size) for i, size in enumerate(sizes))
        problem = Problem(graph, Cluster("c", devices, (Link("*", "*", 8.0),)))
        return module_devices(problem, schedule(problem, self.devices))


# Modules go where they run, and memory may overrule that.
def test_modules_in_a_row_go_where_the_plan_has_them():
    net = Net()
    net.linear("c", 0, net.linear("b", 2, net.linear("a", 1)))
    assert net.module_devices() == {"a": 1, "b": 2, "c": 0}


def test_what_a_module_adds_to_its_own_input_makes_it_whole():
    net = Net()
    x = net.linear("first", 0)
    net.op("block", 2, x, net.linear("block.b", 2, net.linear("block.a", 1, x), size=30))
    assert net.module_devices() == {"first": 0, "block.a": 2, "block.b": 2, "block": 2}


def test_a_module_goes_where_it_runs_and_not_where_its_parameters_lie():
    net = Net()
    net.op("a", 1, net.parameter("a", 0, size=30))
    assert net.module_devices() == {"a": 1}


def test_where_that_exceeds_a_memory_all_go_where_their_parameters_lie():
    net = Net()
    x = net.op("a", 1, net.parameter("a", 0, size=30))
    net.op("b", 1, x, net.parameter("b", 1, size=30))
    assert net.module_devices(memory=76) == {"a": 1, "b": 1}
    assert net.module_devices(memory=59) == {"a": 0, "b": 1}


# Results that meet bring their modules to one device.
def test_what_a_module_adds_of_its_parts_brings_those_together():
    """And leaves modules that follow them where they are."""
    net = Net()
    words, device_names = net.linear("body.words", 0, size=30), net.linear("body.places", 1)
    net.linear("body.layer", 2, net.op("body", 0, words, device_names))
    assert net.module_devices() == {"body.words": 0, "body.places": 0, "body.layer": 2}


def test_residuals_of_the_outermost_module_bring_its_parts_together():
    net = Net()
    x = net.linear("a", 0, size=30)
    net.linear("head", 2, net.op("", 1, x, net.linear("b", 1, x)))
    assert net.module_devices() == {"a": 0, "b": 0, "head": 2}


def test_inputs_of_the_model_are_on_the_first_device_of_the_map():
    """Where accelerate brings them; so a tensor that is masked with one has to be there."""
    net = Net()
    mask = net.op("", 2, kind="input")
    x = net.linear("b", 2, net.linear("a", 1))
    net.linear("head", 2, net.op("", 2, mask, x))
    assert net.module_devices() == {"b": 1, "a": 1, "head": 2}


def test_a_block_that_is_handed_an_input_of_the_model_goes_whole():
    net = Net()
    mask = net.op("", 0, kind="input")
    up = net.linear("block.up", 1, net.linear("first", 0), size=30)
    net.linear("block.down", 2, net.op("block", 1, mask, up))
    assert net.module_devices() == {"first": 0, "block.up": 1, "block.down": 1, "block": 1}


def test_so_does_one_that_is_handed_what_a_module_around_it_makes_of_nothing():
    net = Net()
    mask = net.op("body", 0)
    up = net.linear("body.block.up", 1, net.linear("body.first", 0), size=30)
    net.linear("body.block.down", 2, net.op("body.block", 1, net.op("body.block", 1, mask), up))
    assert net.module_devices() == {
        "body.first": 0,
        "body.block.up": 1,
        "body.block.down": 1,
        "body.block": 1,
    }


# Cases in which modules need not share a device.
def test_what_a_block_makes_of_nothing_itself_joins_nothing():
    net = Net()
    up = net.linear("block.up", 1, net.linear("first", 0), size=30)
    net.linear("block.down", 2, net.op("block", 1, net.op("block", 1), up))
    assert net.module_devices() == {"first": 0, "block.up": 1, "block.down": 2}


def test_the_loss_joins_nothing():
    net = Net()
    x = net.linear("body", 0)
    net.op("", 0, net.linear("one", 1, x), net.linear("two", 2, x), name="loss/add")
    assert net.module_devices() == {"body": 0, "one": 1, "two": 2}


def test_a_module_whose_parts_only_run_backward_has_a_home_of_its_own():
    net = Net()
    net.op("sum", 2, net.linear("a", 0), net.linear("b", 1))
    net.op("sum.part", 2, phase="backward")
    assert net.module_devices() == {"a": 0, "b": 1, "sum": 2}


def test_modules_that_read_one_parameter_share_a_device():
    net = Net()
    shared = net.parameter("words", 1)
    net.op("head", 2, shared, net.linear("body", 0, net.op("words", 1, shared)))
    assert net.module_devices() == {"words": 1, "head": 1, "body": 0}


def test_a_buffer_that_is_handed_around_joins_nothing():
    net = Net()
    angles = net.parameter("", 0, kind="buffer")
    net.linear("b", 2, angles, net.linear("a", 1, angles))
    assert net.module_devices() == {"op0": 0, "a": 1, "b": 2}


def test_modules_without_parameters_go_where_they_run():
    net = Net()
    x = net.linear("a", 0)
    net.op("drop", 1, x, seconds={"*": 0.0})
    assert net.module_devices() == {"a": 0, "drop": 1}


def test_joined_modules_without_parameters_follow_their_seconds():
    net = Net()
    first = net.op("body.a", 1, seconds={"*": 0.0})
    second = net.op("body.b", 2)
    net.op("next", 0, net.op("body", 0, first, second))
    assert net.module_devices() == {"body.a": 2, "body.b": 2, "next": 0}


def test_the_backward_pass_joins_nothing():
    net = Net()
    a, b = net.linear("block.a", 0), net.linear("block.b", 1)
    net.op("block", 2, a, b, phase="backward")
    assert net.module_devices() == {"block.a": 0, "block.b": 1}


# Groups that exceed a memory move, or are split with a warning.
def test_groups_are_moved_until_all_devices_hold_theirs():
    """The plan has three modules on one device, which holds two."""
    net = Net()
    x = net.linear("a", 0, size=40)
    net.linear("d", 1, net.linear("c", 0, net.linear("b", 0, x, size=40), size=40), size=20)
    assert set(net.result().devices.values()) == {0, 1}
    result = net.result(memory=110)
    assert result.fits
    assert list(result.devices.values()).count(0) == 2


def test_where_only_one_device_holds_all_that_meets_it_goes_there():
    net = Net(memories=(30, 30, 200))
    words = net.parameter("words", 0, size=40)
    net.op("head", 1, words, net.linear("body", 0, net.op("words", 1, words), size=40))
    assert net.result().devices == {"words": 2, "head": 2, "body": 2}


def test_what_no_device_holds_is_said():
    net = Net()
    parameters = (net.parameter("a", 0, size=20), net.parameter("a", 1, size=20))
    net.op("a", 0, *parameters)
    result = net.result(memory=30)
    assert not result.fits
    assert result.schedule is not None
    assert result.excess == result.schedule.peak.max() - 30


def test_inputs_that_the_model_brings_are_told():
    """The output layer is too far from the plan where the labels would meet it."""
    net = Net()
    labels = net.op("", 0, kind="input", seconds={"*": 0.0})
    net.op("", 1, labels, net.linear("b", 1, net.linear("a", 0)), seconds={"*": 0.0})
    result = net.result()
    assert (result.devices, result.moves_inputs) == ({"a": 0, "b": 1}, True)


def handed_a_mask() -> Net:
    """A block of two parts, handed a mask that a module around it makes of nothing."""
    net = Net()
    up = net.linear("body.block.up", 1, net.linear("body.first", 0), size=60)
    net.linear("body.block.down", 2, net.op("body.block", 1, net.op("body", 0), up), size=60)
    return net


def test_a_block_that_no_device_holds_is_split_and_what_that_asks_of_the_model_is_told():
    whole, split = (handed_a_mask().result(memory) for memory in (160, 100))
    assert (whole.fits, whole.loose, whole.devices["body.block"]) == (True, False, 1)
    assert (split.fits, split.loose, "body.block" in split.devices) == (True, True, False)


def test_a_module_that_a_shorter_path_takes_along_is_where_the_map_has_it():
    """`block.scale` holds nothing and takes no part in the forward pass; the map's entry for all of
    `block` is one for it too."""
    net = Net()
    x = net.linear("first", 0)
    net.linear("block.layer", 1, x)
    net.op("block.scale.inner", 2, x, phase="backward")
    result = net.result()
    assert folded(result.devices) == {"first": 0, "block": 1}
    assert result.schedule is not None
    assert result.schedule.placement.tolist()[-1] == 1
