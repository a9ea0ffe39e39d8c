"""Captured graphs: their ops, parameters, buffers and errors."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from situate.data.graph import Graph, Op, Tensor
from situate.errors import MissingExtra, SituateError
from situate.torch_capture import capture, capture_function

torch = pytest.importorskip("torch")

import situate  # noqa: E402
from situate.data.slices import Slices  # noqa: E402
from situate.torch_capture import trace_step  # noqa: E402
from tests.torch_capture.recompute.models import blocks  # noqa: E402

nn = torch.nn
F = torch.nn.functional


class Net(nn.Module):
    """A bit of everything: views, batch-norm, dropout, tied and frozen weights, a shared buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.bn = nn.BatchNorm2d(8)
        self.drop = nn.Dropout(0.5)
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8, bias=False)
        self.second.weight = self.first.weight
        self.frozen = nn.Linear(8, 8, bias=False).requires_grad_(False)
        self.register_buffer("scale", torch.ones(8))

    def forward(self, x):
        x = self.drop(F.relu(self.bn(self.conv(x)))).mean((2, 3))
        x = self.second(self.first(x)) * self.scale
        first, second = self.frozen(x).unsqueeze(0).squeeze(0).chunk(2, 1)
        return torch.cat([first, second], 1) * self.scale


def net():
    inputs = torch.randn(4, 3, 9, 9), torch.randint(8, (4,))
    return Net(), inputs, lambda model, x, y: F.cross_entropy(model(x), y)


def linear(loss: Callable[..., object] | None = None, inputs: object = None):
    inputs = (torch.randn(2, 4),) if inputs is None else inputs
    return nn.Linear(4, 4), inputs, loss or (lambda model, x: model(x).pow(2).mean())


@pytest.fixture(scope="module")
def step() -> Graph:
    return capture(net, optimizer="adam", name="net")


@pytest.fixture(scope="module")
def inference() -> Graph:
    return capture(net, training=False, name="net")


def op(graph: Graph, name: str) -> Op:
    return next(op for op in graph.ops if op.name == name)


def tensor(graph: Graph, name: str) -> Tensor:
    return next(tensor for tensor in graph.tensors if tensor.name == name)


def readers(graph: Graph, name: str) -> set[str]:
    return {graph.ops[consumer].name for consumer in tensor(graph, name).consumers}


class TestOps:
    def test_no_view_alias_or_getitem_is_an_op(self, step: Graph) -> None:
        folded = {"view", "t", "expand", "squeeze", "unsqueeze", "split", "detach", "alias"}
        assert not {op.kind.rpartition(".")[2] for op in step.ops} & folded
        assert not any("getitem" in op.name or "assert" in op.name for op in step.ops)

    def test_the_consumer_of_a_view_reads_its_base(self, step: Graph) -> None:
        assert "cat" in readers(step, "frozen/mm:0")

    def test_ops_are_named_after_their_module(self, step: Graph) -> None:
        assert op(step, "conv/convolution").kind == "aten.convolution"
        assert op(step, "conv/convolution_backward").module == "conv"
        assert op(step, "loss/nll_loss_forward").module == ""

    def test_two_captures_are_equal(self, step: Graph) -> None:
        assert capture(net, optimizer="adam", name="net").hash == step.hash

    def test_phases(self, step: Graph, inference: Graph) -> None:
        assert op(step, "conv/convolution").phase == "forward"
        assert op(step, "conv/convolution_backward").phase == "backward"
        assert op(step, "conv.weight/adam").phase == "update"
        assert {op.phase for op in inference.ops} == {"forward"}

    def test_flops_of_a_convolution(self, step: Graph) -> None:
        outputs = 4 * 8 * 7 * 7
        assert op(step, "conv/convolution").flops == 2 * outputs * 3 * 3 * 3

    def test_flops_and_traffic_of_a_matrix_product(self, step: Graph) -> None:
        assert op(step, "first/addmm").flops == 2 * 4 * 8 * 8
        assert op(step, "first/addmm").traffic == 4 * (8 + 4 * 8 + 8 * 8 + 4 * 8)

    def test_activations_have_their_size(self, step: Graph) -> None:
        assert tensor(step, "conv/convolution:0").size == 4 * 8 * 7 * 7 * 4
        assert tensor(step, "drop/native_dropout:1").size == 4 * 8 * 7 * 7

    def test_only_the_loss_is_an_output(self, step: Graph) -> None:
        outputs = [tensor.name for tensor in step.tensors if tensor.output]
        assert outputs == ["loss/nll_loss_forward:0"]

    def test_nothing_is_computed_for_nobody(self, step: Graph) -> None:
        needed = {t.producer for t in step.tensors if t.consumers or t.output}
        idle = [op for j, op in enumerate(step.ops) if j not in needed and op.phase != "update"]
        assert idle == []

    def test_an_output_that_nobody_reads_is_workspace(self) -> None:
        model = nn.MaxPool2d(2)
        graph = capture(lambda: (model, torch.randn(1, 1, 4, 4), None), training=False)
        assert op(graph, "max_pool2d_with_indices").workspace == 2 * 2 * 8

    def test_a_product_is_of_the_dtype_that_is_multiplied(self) -> None:
        class Product(nn.Linear):
            def forward(self, x):
                numbers = super().forward(x).to(torch.int8)
                return torch._int_mm(numbers, numbers.t())

        graph = capture(lambda: (Product(32, 32), torch.ones(32, 32), None), training=False)
        product = op(graph, "int_mm")
        assert (product.dtype, product.flops) == ("int8", 2 * 32**3)

    def test_a_dtype_is_named_as_in_torch(self) -> None:
        build = lambda: (nn.Linear(4, 4).to(torch.bfloat16), torch.randn(2, 4).bfloat16(), None)  # noqa: E731
        graph = capture(build, training=False)
        assert {op.dtype for op in graph.ops} == {"bfloat16"}
        assert op(graph, "weight").persistent == 4 * 4 * 2

    def test_copied_layers_are_captured(self) -> None:
        layer = lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)  # noqa: E731
        graph = capture(
            lambda: (nn.TransformerEncoder(layer(), 2), torch.randn(1, 4, 8), None), training=False
        )
        assert {op.module.partition(".self")[0] for op in graph.ops} >= {"layers.0", "layers.1"}


class TestParameters:
    def test_every_trained_parameter_has_one_update_in_its_group(self, step: Graph) -> None:
        trained = [op for op in step.ops if op.kind == "parameter" and op.group]
        updates = [op for op in step.ops if op.phase == "update"]
        assert Counter(op.group for op in trained) == Counter(op.group for op in updates)
        assert all(op.group == op.name for op in trained)

    def test_a_parameter_holds_its_optimisers_state(self, step: Graph) -> None:
        assert op(step, "conv.weight").persistent == 3 * 8 * 3 * 3 * 3 * 4

    @pytest.mark.parametrize(
        ("optimizer", "copies"), [("sgd", 1), ("momentum", 2), ("adam", 3), ("adamw", 3)]
    )
    def test_state_by_optimiser(self, optimizer: str, copies: int) -> None:
        graph = capture(linear, optimizer=optimizer)
        assert op(graph, "weight").persistent == copies * 64
        assert op(graph, f"weight/{optimizer}").traffic == (2 * copies + 1) * 64

    def test_it_is_resident_where_it_is_held(self, step: Graph) -> None:
        assert tensor(step, "conv.weight:0").resident
        assert "conv/convolution" in readers(step, "conv.weight:0")

    def test_an_update_reads_the_gradient_and_writes_nothing(self, step: Graph) -> None:
        update = step.ops.index(op(step, "conv.weight/adam"))
        assert readers(step, "conv/convolution_backward:1") == {"conv.weight/adam"}
        assert all(t.producer != update for t in step.tensors)

    def test_tied_weights_are_one_parameter_whose_gradients_are_added(self, step: Graph) -> None:
        assert [o.name for o in step.ops if o.name.endswith("second.weight")] == []
        assert {"first/addmm", "second/mm"} <= readers(step, "first.weight:0")
        assert readers(step, "first/add:0") == {"first.weight/adam"}

    def test_a_frozen_parameter_has_no_update(self, step: Graph) -> None:
        assert op(step, "frozen.weight").persistent == 8 * 8 * 4
        assert op(step, "frozen.weight").group is None

    def test_all_readers_of_a_parameter_end_before_its_update(self, step: Graph) -> None:
        after: dict[int, set[int]] = {j: set() for j in range(len(step.ops))}
        edges = list(step.edges())
        for j in reversed(step.order):
            for before, consumer in edges:
                if before == j:
                    after[j] |= {consumer} | after[consumer]
        for update in (j for j, op in enumerate(step.ops) if op.phase == "update"):
            parameter = next(
                t for t in step.tensors if step.ops[t.producer].name == step.ops[update].group
            )
            assert all(update in after[reader] for reader in parameter.consumers)

    def test_a_parameter_without_use_is_still_held(self) -> None:
        class Unused(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.used, self.unused = nn.Linear(4, 4), nn.Linear(4, 4)

            def forward(self, x):
                return self.used(x).sum()

        graph = capture(lambda: (Unused(), torch.randn(2, 4), None))
        assert op(graph, "unused.weight").persistent == 64
        assert op(graph, "unused.weight").group is None


class TestBuffers:
    def test_batch_norm_holds_its_own_statistics(self, step: Graph) -> None:
        batch_norm = op(step, "bn/native_batch_norm_legit_functional")
        assert batch_norm.persistent == 8 * 4 + 8 * 4 + 8
        assert not any("running" in op.name or "batches" in op.name for op in step.ops)

    def test_a_buffer_that_two_ops_read_is_an_op(self, step: Graph) -> None:
        assert op(step, "scale").kind == "buffer"
        assert op(step, "scale").persistent == 32
        assert op(step, "scale").group is None

    def test_a_buffer_that_is_read_and_overwritten_elsewhere_has_an_update(self) -> None:
        class Average(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.linear = nn.Linear(4, 4)
                self.register_buffer("mean", torch.zeros(4))

            def forward(self, x):
                y = self.linear(x)
                self.mean.mul_(0.9).add_(0.1 * y.detach().mean(0))
                return (y - self.mean).sum()

        graph = capture(lambda: (Average(), torch.randn(2, 4), None))
        assert op(graph, "mean").group == op(graph, "mean/copy").group == "mean"
        assert op(graph, "mean/copy").kind == "update.copy"

    def test_a_buffer_that_is_overwritten_unread_is_held(self) -> None:
        class Last(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.linear = nn.Linear(4, 4)
                self.register_buffer("last", torch.zeros(2, 4))

            def forward(self, x):
                y = self.linear(x)
                torch.mul(y.detach(), 2, out=self.last)
                return y.sum()

        graph = capture(lambda: (Last(), torch.randn(2, 4), None))
        assert op(graph, "last").persistent == 32
        assert op(graph, "last").group == op(graph, "last/copy").group == "last"

    def test_a_tensor_of_the_builders_own_is_a_buffer(self) -> None:
        def build():
            labels = torch.randint(4, (2,))
            return linear(lambda model, x: F.cross_entropy(model(x), labels))

        persistent = sum(op.persistent for op in capture(build).ops if op.kind != "parameter")
        assert persistent == 2 * 8


class TestInference:
    def test_it_ends_with_what_the_model_returns(self, inference: Graph) -> None:
        outputs = [tensor.name for tensor in inference.tensors if tensor.output]
        assert outputs == ["mul#2:0"]
        assert not any(op.name.startswith(("loss", "input/1")) for op in inference.ops)

    def test_dropout_costs_nothing(self, inference: Graph) -> None:
        assert not any(op.module == "drop" for op in inference.ops)

    def test_parameters_hold_no_state_and_no_group(self, inference: Graph) -> None:
        assert op(inference, "conv.weight").persistent == 8 * 3 * 3 * 3 * 4
        assert all(op.group is None for op in inference.ops)


class TestBuild:
    def test_a_criterion_takes_the_last_input_as_its_target(self) -> None:
        inputs = torch.randn(2, 4), torch.randint(4, (2,))
        graph = capture(lambda: linear(nn.CrossEntropyLoss(), inputs))
        assert "loss/nll_loss_forward" in {op.name for op in graph.ops}

    def test_inputs_by_name(self) -> None:
        inputs = {"x": torch.randn(2, 4), "scale": 2}
        graph = capture(lambda: linear(lambda model, x, scale: model(x).sum() * scale, inputs))
        assert sum(op.kind == "input" for op in graph.ops) == 1

    def test_a_model_that_needs_values_while_it_is_built(self) -> None:
        def build():
            model, inputs, loss = linear()
            model.weight.data /= model.weight.norm().item()
            return model, inputs, loss

        assert capture(build).hash == capture(linear).hash

    @pytest.mark.parametrize(
        ("build", "message"),
        [
            (lambda: 3, "got int"),
            (lambda: linear()[:2], "got tuple of 2"),
            (lambda: (3, 4, 5), "the model is int"),
            (lambda: linear(inputs=(1, 2)), "the inputs are tuple of 2"),
            (lambda: (*linear()[:2], 3), "the loss is int"),
            (lambda: linear(lambda model, x: model(x)), r"tensor of shape \(2, 4\)"),
            (lambda: linear(lambda model, x: 3), "one floating-point number, got int"),
            (
                lambda: linear(lambda model, x: SimpleNamespace(loss=model(x).mean())),
                r"got SimpleNamespace: give a loss that returns its \.loss",
            ),
            (lambda: linear(lambda out: out), r"the step is loss\(model, \*inputs\)"),
            (lambda: linear(lambda model, x: x.sum()), "depends on no parameter"),
            (lambda: (nn.ReLU(), torch.randn(2), None), "no parameter takes a gradient"),
            (lambda: {}["weights"], r"test_torch.py:\d+: KeyError: 'weights'"),
            (lambda: sys.exit(3), r"building the model: .*SystemExit: 3"),
            (lambda width: linear(), r"'width' \(it is called without arguments\)"),
        ],
    )
    def test_what_it_must_return(self, build: Callable[[], object], message: str) -> None:
        with pytest.raises(SituateError, match=message) as error:
            capture(build, name="mine")
        assert str(error.value).startswith("mine: ")
        assert "\n" not in str(error.value)

    @pytest.mark.parametrize(
        "loss",
        [
            lambda model, x: model(x).sum() * (2 if x.sum() > 0 else 1),
            lambda model, x: model(x).sum() * x.max().item(),
            lambda model, x: model(x[x > 0].reshape(-1, 4)).sum(),
        ],
    )
    def test_a_step_that_depends_on_values_names_the_line(
        self, loss: Callable[..., object], capfd: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(SituateError, match=r"test_torch.py:\d+: .*values of a tensor.*: use "):
            capture(lambda: linear(loss))
        assert capfd.readouterr() == ("", "")

    def test_an_unknown_optimizer(self) -> None:
        with pytest.raises(SituateError, match="did you mean 'adam'"):
            capture(linear, optimizer="adm")

    def test_another_version_of_torch_is_a_warning(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("situate.torch_capture.TESTED", torch.__version__.partition("+")[0])
        assert capture(linear).warnings == ()
        monkeypatch.setattr("situate.torch_capture.TESTED", "9.9.9")
        assert "tested with 9.9.9" in capture(linear).warnings[0]

    def test_torch_is_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        with pytest.raises(MissingExtra, match=r"situate\[torch\]"):
            capture(linear)


MODULE = """
import torch
print("imported")

def step():
    print("built")
    return torch.nn.Linear(WIDTH, 4), torch.randn(2, WIDTH), lambda m, x: m(x).sum()

broken = 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Write a module into the current directory, imported afresh."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def write(name: str, text: str) -> None:
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)

    return write


class TestCaptureFunction:
    def test_it_finds_a_module_of_the_current_directory(self, module) -> None:
        module("mine", MODULE.replace("WIDTH", "4"))
        graph = capture_function("mine:step", optimizer="adam")
        assert op(graph, "weight").persistent == 3 * 64
        assert graph.name == "mine:step"

    def test_inference(self, module) -> None:
        module("mine", MODULE.replace("WIDTH", "4"))
        assert all(op.phase == "forward" for op in capture_function("mine:step:inference").ops)
        with pytest.raises(SituateError, match="leave the optimizer out"):
            capture_function("mine:step:inference", optimizer="sgd")

    def test_the_second_time_it_comes_from_disk(self, module, capsys) -> None:
        module("mine", MODULE.replace("WIDTH", "4"))
        first = capture_function("mine:step")
        assert capsys.readouterr().out.count("built") == 1
        assert capture_function("mine:step").hash == first.hash
        assert capsys.readouterr().out.count("built") == 0
        capture_function("mine:step", cache=False)
        assert capsys.readouterr().out.count("built") == 1

    def test_another_source_is_captured_anew(self, module) -> None:
        module("width", "WIDTH = 4")
        module("mine", "from width import WIDTH\n" + MODULE)
        capture_function("mine:step")
        module("width", "WIDTH = 16")
        module("mine", "from width import WIDTH\n" + MODULE)
        assert op(capture_function("mine:step"), "weight").persistent == 16 * 4 * 4

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("mine:stepp", "'stepp' does not exist in mine; did you mean 'step'"),
            ("mine:broken", "'broken' is no function"),
            ("nothing_here:step", "no module 'nothing_here'"),
            ("mine.deeper:step", r"no module 'mine\.deeper'"),
            ("needs:step", "needs 'not_installed_anywhere', which is not installed"),
            ("wrong:step", r"importing wrong: wrong\.py:1: ZeroDivisionError"),
            ("bad:step", "SyntaxError"),
            ("leaves:step", r'importing leaves: leaves.py:1: .* under if __name__ == "__main__":$'),
            ("mine.py", "must look like package.module:function"),
            ("../mine:step", "must look like package.module:function"),
        ],
    )
    def test_errors(self, module, text: str, message: str) -> None:
        module("mine", MODULE.replace("WIDTH", "4"))
        module("needs", "import not_installed_anywhere")
        module("wrong", "1 / 0")
        module("bad", "def f(:")
        module("leaves", "import sys; sys.exit(3)")
        with pytest.raises(SituateError, match=message) as error:
            capture_function(text)
        assert "\n" not in str(error.value)


def test_importing_the_reader_loads_no_torch() -> None:
    code = "import sys, situate.torch_capture; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_its_graphs_are_those_that_are_captured_one_by_one():
    rule, slices = "adamw:clip=1.0", Slices((1, 1))
    step = trace_step(blocks, rule, "model", slices)
    for modules in (["layers.1"], []):
        alone = situate.capture(blocks, optimizer=rule, slices=slices, recompute=modules)
        assert step.graph(modules).hash == alone.hash
        assert step.graph(modules).recompute == alone.recompute
