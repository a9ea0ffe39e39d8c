"""Findings of a step: those that reach a result, each cause once."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from situate.torch_capture.build import build_fake  # noqa: E402
from situate.torch_capture.nodes import operator_name  # noqa: E402
from situate.torch_capture.slices.cut import Cut  # noqa: E402
from situate.torch_capture.slices.dependence.analysis import dependence  # noqa: E402
from situate.torch_capture.slices.dependence.constants import Cutting  # noqa: E402
from situate.torch_capture.slices.dependence.relation import Reason, reduced  # noqa: E402
from situate.torch_capture.slices.traces import Traces  # noqa: E402


def analysed(loss):
    """The dependence of the first of two slices on a batch of 8."""

    def build():
        return nn.Linear(6, 3), (torch.randn(8, 6), torch.randn(8, 3)), loss

    traces, cut = Traces(build_fake(build, "model"), "model"), Cut((4, 4), (0, 0))
    part = traces.parts(cut)[0]
    return dependence(part, traces.whole, cut.axes, Cutting(4, 8, (0, 4)))


def reasons(step):
    return [finding.reason for finding in step.findings]


# Only ops that are a cause themselves, and that reach a result, are findings.
def test_a_mean_has_no_finding():
    step = analysed(lambda m, x, y: F.mse_loss(m(x), y))
    assert step.findings == ()
    assert step.relation(step.loss) == reduced(1)


def test_what_reaches_no_result_has_no_finding():
    def loss(model, x, y):
        out = model(x)
        (out * out.flip(0)).detach().sum()
        return F.mse_loss(out, y)

    assert analysed(loss).findings == ()


def test_consequences_are_not_repeated():
    def loss(model, x, y):
        out = model(x) * torch.arange(len(x), dtype=torch.float32).flip(0)[:, None]
        return F.mse_loss((out * len(x)).tanh(), y)

    step = analysed(loss)
    assert reasons(step) == [Reason.PLACE]
    assert step.relation(step.loss).assumed


def test_a_second_cause_is_a_finding_of_its_own():
    def loss(model, x, y):
        out = model(x)
        return F.mse_loss((out + out.flip(0)).softmax(0), y)

    step = analysed(loss)
    forward = [finding.node for finding in step.findings if not finding.backward]
    assert [operator_name(node) for node in forward] == ["flip", "_softmax"]


def test_samples_are_taken_together_for_the_loss_alone_or_before_it():
    alone = analysed(lambda m, x, y: F.mse_loss(m(x), y).sqrt())
    assert all(alone.is_of_loss(finding) for finding in alone.findings if not finding.backward)
    before = analysed(lambda m, x, y: F.mse_loss(m(x) - m(x).mean().exp(), y))
    assert not before.is_of_loss(before.findings[0])
    assert before.origin(before.findings[0].node).target is torch.ops.aten.mean.default


def test_a_step_with_other_ops_at_another_size_has_no_relations():
    def loss(model, x, y):
        out = model(x)
        return F.mse_loss(out.relu() if len(x) == 8 else out, y)

    assert analysed(loss) is None
