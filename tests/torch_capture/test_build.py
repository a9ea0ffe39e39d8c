"""Inputs of the captured step and of later calls."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from situate.torch_capture.build import FakeStep, from_real, set_mode  # noqa: E402

X, Y = torch.ones(2, 3), torch.zeros(2)


def loss(model: nn.Module, *inputs: Any, **options: Any) -> Tensor:
    value: Tensor = model(next(iter([*inputs, *options.values()]))).mean()
    return value


def fake_step(inputs: Any) -> FakeStep:
    return from_real(nn.Linear(3, 1), inputs, loss, "m")


# Inputs are taken apart and compared with the captured ones.
def test_a_tensor_that_is_given_twice_is_two_inputs() -> None:
    first, second = fake_step((X, X)).tensors
    assert first is not second
    assert (second.shape, second.stride(), second.dtype) == (X.shape, X.stride(), X.dtype)


def test_a_number_must_be_the_captured_one() -> None:
    separate = fake_step((X, 2.0)).separate
    assert separate((X, 2.0)) == (X,)
    with pytest.raises(SituateError, match=r"an input is 3.0 and was 2.0 when .* make it a tensor"):
        separate((X, 3.0))


@pytest.mark.parametrize("inputs", [{"x": X, "y": Y}, ({"x": X, "y": [Y]},)])
def test_the_entries_of_dicts_may_come_in_any_order(inputs: Any) -> None:
    entries = inputs if isinstance(inputs, dict) else inputs[0]
    turned = dict(reversed(entries.items()))
    assert [id(t) for t in fake_step(inputs).separate((turned,))] == [id(X), id(Y)]


@pytest.mark.parametrize("wrapped", [lambda x: x, lambda x: (x,), lambda x: {"x": x}])
def test_of_a_loader_one_batch_is_asked_for(wrapped: Any) -> None:
    loader = torch.utils.data.DataLoader([X, X])
    for entry, kind in ((loader, "DataLoader"), (iter([X]), "list_iterator")):
        with pytest.raises(SituateError, match=f"are a {kind}: .*: next\\(iter\\(loader\\)\\)$"):
            fake_step(wrapped(entry))


def test_other_entries_are_refused() -> None:
    with pytest.raises(SituateError, match="not structured like"):
        fake_step({"x": X, "y": Y}).separate(({"x": X, "z": Y},))


# Models that cannot be captured are refused, and modes of modules are kept.
@pytest.mark.filterwarnings("ignore:.*torch.jit")
@pytest.mark.parametrize("compiles", [torch.jit.script, lambda model: torch.jit.trace(model, X)])
def test_what_torchscript_compiled_is_refused_with_the_remedy(compiles: Any) -> None:
    compiled = compiles(nn.Linear(3, 1))
    for model, which in ((compiled, "the model"), (nn.Sequential(compiled), "module '0'")):
        with pytest.raises(SituateError, match=f"{which} was compiled .*return the nn.Module that"):
            from_real(model, (X,), loss, "m")


@pytest.mark.filterwarnings("ignore:.*torch.jit")
def test_a_traced_model_is_refused_while_it_is_captured() -> None:
    def build() -> Any:
        return torch.jit.trace(nn.Linear(3, 1), X), (X,), loss

    with pytest.raises(SituateError, match="m: the model was compiled"):
        capture(build, name="m")


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("before", [True, False])
def test_the_mode_is_set_where_the_model_has_another(training: bool, before: bool) -> None:
    model = nn.Sequential(nn.Dropout()).train(before)
    set_mode(model, training)
    assert model.training is model[0].training is training


def test_a_part_that_infers_stays_so_in_a_model_that_trains() -> None:
    model = nn.Sequential(nn.Dropout(), nn.Dropout())
    model[0].eval()
    set_mode(model, True)
    assert [part.training for part in model] == [False, True]
