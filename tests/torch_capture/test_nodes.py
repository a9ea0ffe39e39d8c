"""The module and the source line of a captured op."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import fx, nn  # noqa: E402

from situate.torch_capture.build import build_fake  # noqa: E402
from situate.torch_capture.nodes import place, places  # noqa: E402
from situate.torch_capture.tracing import joint  # noqa: E402


def node(module=None, stack_trace=None):
    op = fx.Graph().call_function(torch.relu)
    if module is not None:
        op.meta["nn_module_stack"] = {"0": (f"model.{module}".rstrip("."), "Linear")}
    op.meta["stack_trace"] = stack_trace
    return op


TRACEBACK = '  File "/home/me/mine.py", line 12, in forward\n    return self.fc(x)\n'


# Messages name an op's module and source line.
def test_an_op_stands_in_its_module_and_its_line():
    assert place(node("layers.0", TRACEBACK)) == "layers.0, /home/me/mine.py:12"


class Shifted(nn.Linear):
    def forward(self, x):
        return super().forward(x).flip(0).mean()


def test_a_captured_op_stands_in_the_line_of_its_module():
    def build():
        return nn.Sequential(Shifted(2, 3)), (torch.randn(4, 2),), None

    graph = joint(build_fake(build, "model"), True, "model").graph
    flip = next(node for node in graph.nodes if node.target is torch.ops.aten.flip.default)
    line = Shifted.forward.__code__.co_firstlineno + 1
    assert place(flip).startswith("0, ")
    assert place(flip).endswith(f"test_nodes.py:{line}")


def test_an_op_without_a_line_or_a_module_is_named_as_well_as_it_can_be():
    assert place(node("layers.0")) == "layers.0"
    assert place(node()) == "the model"
    assert place(node("", TRACEBACK)) == "the model, /home/me/mine.py:12"


def test_lines_of_torch_are_passed_over():
    inside = f'{TRACEBACK}  File "{torch.__file__}", line 3, in relu\n    pass\n'
    assert place(node("fc", inside)) == "fc, /home/me/mine.py:12"


def test_several_ops_are_counted_and_the_first_is_named():
    assert places([node("fc")]) == "an op of fc"
    assert places([node("fc"), node("other")]) == "2 ops, the first of fc"
