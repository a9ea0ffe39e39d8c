"""A step that cannot be captured is refused in a line with a remedy."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.runtime.equality import compare  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from situate.torch_capture.refusals.errors import explained  # noqa: E402


class Branching(nn.Module):
    """Decides by values, with an operator for that."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda t: self.layer(t), lambda t: -self.layer(t), (x,))


class Packing(nn.Module):
    """A recurrent layer over a packed sequence."""

    def __init__(self):
        super().__init__()
        self.cells = nn.GRU(4, 4, batch_first=True)

    def forward(self, x):
        packed = nn.utils.rnn.pack_padded_sequence(x, [3, 2], batch_first=True)
        return self.cells(packed)[0].data


def packed_loss(model, x):
    """Scores of a packed sequence, without a recurrent layer."""
    lengths = torch.full((len(x),), 3).clamp(max=x.long().amax())
    return nn.utils.rnn.pack_padded_sequence(model(x)[:, None], lengths, batch_first=True)[0].sum()


class WithModel(nn.MSELoss):
    """A loss module with the arguments of a loss function."""

    def forward(self, model, x, y):
        return super().forward(model(x), y)


def penalised(model, x):
    """A gradient penalty."""
    x = x.detach().requires_grad_()
    value = model(x)
    (gradient,) = torch.autograd.grad(value.sum(), x, create_graph=True)
    return value.mean() + gradient.norm()


def rounding(apart):
    """A loss of rounded numbers, which passes gradients on; `apart` keeps them from a tensor."""

    def loss(model, x):
        out = model(x)
        return (out + apart(out.round() - out)).mean()

    return loss


def masked(**arguments):
    """An encoder whose mask is an input."""
    layer = nn.TransformerEncoderLayer(8, 2, 8, dropout=0.0, batch_first=True)
    inputs = torch.ones(2, 3, 8), nn.Transformer.generate_square_subsequent_mask(3)
    model = nn.TransformerEncoder(layer, 1)
    return model, inputs, lambda model, x, mask: model(x, mask, **arguments).mean()


def slope(model):
    """The gradient of a model by its input."""
    return torch.func.grad(lambda x: model(x).sum())


# Every refusal names the line and a remedy, and the remedies work.
@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: (nn.Linear(4, 1), torch.ones(4), lambda model, x: slope(model)(x).mean()),
            r"net: capturing the step: .*asks for gradients itself .* torch.func.grad, .*: leave",
        ),
        (
            lambda: (
                nn.Linear(4, 1),
                torch.ones(2, 4),
                lambda model, x: torch.vmap(slope(model))(x).mean(),
            ),
            r"test_errors\.py:\d+: the step asks for gradients itself .*: leave them out",
        ),
        (
            lambda: (nn.Sequential(nn.Linear(4, 4), nn.Tanh()), torch.ones(2, 4), penalised),
            r"test_errors\.py:\d+: the step asks for gradients itself .*: leave them out",
        ),
        (
            lambda: (nn.Linear(4, 4), torch.ones(2, 4), rounding(lambda off: off.data)),
            r"net: capturing the step: the step reads a tensor's \.data .*: for \.data write \.det",
        ),
        (
            lambda: (Branching(), torch.ones(2, 4), lambda model, x: model(x).mean()),
            r"net: capturing the step: (\S+:\d+: )?the step calls .*torch\.cond.*: use torch\.w",
        ),
        (
            lambda: (Packing(), torch.ones(2, 3, 4), lambda model, x: model(x).mean()),
            r"test_errors\.py:\d+: a packed sequence has sizes .*: give the layer the padded seq",
        ),
        (
            lambda: (nn.Linear(4, 4), torch.ones(2, 4), packed_loss),
            r"test_errors\.py:\d+: a packed sequence has sizes .*: give the layer the padded seq",
        ),
        (
            lambda: (nn.Linear(4, 4), (torch.ones(2, 4), torch.ones(2)), nn.BCELoss()),
            r"step: BCELoss, .*test_errors\.py:\d+: ValueError: Using a target size",
        ),
        (
            lambda: (nn.Linear(4, 4), (torch.ones(2, 4), torch.ones(2, 4)), WithModel()),
            r"step: WithModel, .*test_errors\.py:\d+: TypeError: .* \(a loss that is a module",
        ),
        (
            lambda: masked(),
            r"test_errors\.py:\d+: PyTorch looks here whether a mask is causal, .* by is_causal=",
        ),
    ],
)
def test_what_is_not_captured_has_a_remedy(build, message):
    with pytest.raises(SituateError, match=message):
        capture(build, name="net")


def test_the_remedy_for_data_helps():
    loss = rounding(lambda off: off.detach())
    assert capture(lambda: (nn.Linear(4, 4), torch.ones(2, 4), loss), name="net").ops


def test_the_remedy_for_masks_helps():
    assert capture(lambda: masked(is_causal=True), name="net").ops


@pytest.mark.filterwarnings("ignore")
def test_a_model_that_cannot_be_copied_has_a_remedy_and_no_line_of_the_runtimes():
    model = nn.Sequential(nn.utils.weight_norm(nn.Linear(4, 4)))
    with pytest.raises(SituateError, match=r"^model: copying the model: a module keeps .*: use "):
        compare(model, (torch.ones(2, 4),), None, None, lambda *_: None)


# Errors of the program are quoted, not explained.
def test_a_key_error_of_the_user_is_the_users():
    with (
        pytest.raises(SituateError, match=r"test_errors\.py:\d+: KeyError: 'val'$"),
        explained("net", "capturing the step"),
    ):
        {}["val"]


def test_an_error_that_the_caller_handles_has_no_part_in_the_message():
    def plan_it():
        capture(lambda: (nn.Linear(4, 1), torch.ones(2, 4), lambda m, x: x.meen()), name="net")

    def handling():
        try:
            capture(lambda: (Branching(), torch.ones(2, 4), lambda m, x: m(x).mean()), name="net")
        except SituateError:
            plan_it()

    messages = []
    for way in (plan_it, handling):
        with pytest.raises(SituateError) as raised:
            way()
        messages.append(str(raised.value))
    assert messages[0] == messages[1]
