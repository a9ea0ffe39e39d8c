"""Steps that read values of their inputs, or numbers in lists of tensors."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from situate.data.graph import Graph  # noqa: E402
from situate.errors import SituateError  # noqa: E402
from situate.runtime.equality import compare  # noqa: E402
from situate.runtime.programs.program import capture_program  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from tests.readers.calling import of  # noqa: E402
from tests.runtime.placing import placed_step, sgd  # noqa: E402

X = torch.arange(12.0).reshape(4, 3)
MASK = [1, 0, 1, 1]


# A step may read values of inputs, and its plan then holds for these values alone.
class Net(nn.Module):
    """Calls a function with `x`, `m` and `labels`."""

    def __init__(self, function):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.weight = nn.Parameter(torch.ones(4))
        self.register_buffer("buffer", torch.ones(4, dtype=torch.long))
        self.function = function

    def forward(self, x, m, labels=None):
        return self.function(self, x, m, labels)


def mean(model, **batch):
    return model(**batch).mean()


def inputs():
    return {"x": X.clone(), "m": torch.tensor(MASK)}


def captured(function, build=inputs, loss=mean, training=True) -> Graph:
    """The graph of the step, which is the same of a model that exists."""
    model, built_inputs = Net(function), build()
    graph = capture(lambda: (Net(function), build(), loss), training=training, name="net")
    program = capture_program(model, built_inputs, loss, training=training, name="net")
    assert program.graph == graph
    return graph


def refused(function, build=inputs, loss=mean):
    with pytest.raises(SituateError, match="depends on the values of a tensor"):
        capture(lambda: (Net(function), build(), loss), name="net")
    with pytest.raises(SituateError, match="depends on the values of a tensor"):
        capture_program(Net(function), build(), loss, name="net")


def if_any(mask_of):
    """The doubled layer if something in `mask_of(model, x, m)` is true, else the layer."""

    def function(model, x, m, labels):
        y = model.layer(x)
        return 2 * y if mask_of(model, x, m).any() else y

    return function


LOOKS = {
    "whether any is true": if_any(lambda model, x, m: m),
    "what follows from them": if_any(lambda model, x, m: (m.float().cumsum(0) - 1).long() > 1),
    "how many there are": lambda model, x, m, labels: model.layer(x)[: m.sum().item()],
    "what a mask selects": lambda model, x, m, labels: model.layer(x)[m.bool()],
    "where a mask is true": lambda model, x, m, labels: model.layer(x)[m.nonzero()[:, 0]],
    "a list of them": lambda model, x, m, labels: sum(model.layer(x)[i] for i in m.tolist()),
    "a tensor of them": lambda model, x, m, labels: model.layer(x)[
        torch.tensor([m.max(), m.sum()])
    ],
}


@pytest.mark.parametrize("function", LOOKS.values(), ids=LOOKS)
def test_a_step_that_looks_at_an_input_computes_as_eager_pytorch_does(function):
    captured(function, training=False)
    graph = captured(function)
    [warning] = graph.warnings
    assert "the values of input 'm' alone, which are [1, 0, 1, 1]: " in warning
    assert "test_input_values.py:" in warning
    result = compare(
        Net(function),
        inputs(),
        mean,
        sgd,
        lambda model, optimizer: placed_step(model, optimizer, given=(inputs(), mean)),
    )
    assert result.within(0.0)


def test_an_input_that_is_not_looked_at_is_not_taken():
    assert captured(lambda model, x, m, labels: model.layer(x) * m[:, None]).warnings == ()


def drawn_inputs():
    return {"x": X.clone(), "m": torch.randint(1, 2, (4,))}


def written_inputs():
    result = torch.zeros(4, dtype=torch.bool)
    result[1:] = True
    return {"x": X.clone(), "m": result}


@pytest.mark.parametrize("build", [drawn_inputs, written_inputs])
def test_example_inputs_have_the_values_that_building_them_gives(build):
    values = build()["m"].tolist()
    [warning] = captured(LOOKS["what a mask selects"], build).warnings
    assert str(values) in warning


def view_after_write(model, x, m, labels):
    """A view of a tensor that something unknown is written over."""
    view = m[:2]
    m.copy_(x[:, 0])
    return model.layer(x) * 2 if view.any() else model.layer(x)


def view_of_a_constant(model, x, m, labels):
    """A view of a constant, known until something unknown is written into the whole."""
    whole = torch.zeros(4, dtype=torch.long)
    view = whole[:2]
    view.copy_(m[:2])
    whole[0] = x.argmax()
    return model.layer(x) * 2 if view.any() else model.layer(x)


def with_other_data(model, x, m, labels):
    m.data = x.argmax(1)
    return model.layer(x) * 2 if m.any() else model.layer(x)


# Values that may change in every step are never known.
NEVER = {
    "a floating-point input": if_any(lambda model, x, m: x > 1),
    "a parameter": if_any(lambda model, x, m: m * model.weight),
    "a buffer": if_any(lambda model, x, m: m * model.buffer),
    "chance": if_any(lambda model, x, m: m * torch.rand(4)),
    "chance that an input weights": if_any(lambda model, x, m: m.float().bernoulli()),
    "dropout": if_any(lambda model, x, m: nn.functional.dropout(m.float(), 0.5)),
    "an input that chance is written over": if_any(lambda model, x, m: m.random_(0, 2)),
    "memory that nothing was written to": if_any(lambda model, x, m: torch.empty_like(m)),
    "memory that grew": if_any(lambda model, x, m: m.clone().resize_(9)),
    "a view of what was written over": view_after_write,
    "a view of a constant that was written over": view_of_a_constant,
    "an input whose data is another's": with_other_data,
}


@pytest.mark.parametrize("function", NEVER.values(), ids=NEVER)
def test_no_other_values_are_taken(function):
    refused(function)


def of_labels(model, x, m, labels):
    return model.layer(x) * 2 if (labels + 1).any() else model.layer(x)


def labelled():
    return inputs() | {"labels": torch.tensor([1, 2])}


def test_labels_are_not_taken_whatever_model_and_loss_make_of_them():
    refused(of_labels, labelled)
    refused(lambda model, x, m, labels: model.layer(x)[(labels > 0).nonzero()], labelled)
    refused(
        of_labels, labelled, lambda model, labels, **rest: model(labels=labels > 1, **rest).mean()
    )


def test_what_the_loss_itself_looks_at_is_not_taken():
    def loss(model, **batch):
        return model(**batch).mean() * (2 if batch["m"].any() else 1)

    refused(lambda model, x, m, labels: model.layer(x), loss=loss)


def test_an_input_that_the_step_writes_over_is_looked_at_as_written():
    def function(model, x, m, labels):
        view = m[1:2]
        m.fill_(0)
        m[1] = 5
        return model.layer(x)[: m.sum().item() - view.item() + 1]

    assert captured(function).warnings


def written_then_compared(model, x, m, labels):
    m.clamp_(max=1)
    return model.layer(x)[m == 1]


COMPARISON_WARNING = "the values of input 'm' == 1 alone, which are [True, False, True, True]"


def test_of_an_input_that_is_compared_only_that_counts():
    [warning] = captured(lambda model, x, m, labels: model.layer(x)[m == 1]).warnings
    assert COMPARISON_WARNING in warning
    [warning] = captured(written_then_compared).warnings
    assert COMPARISON_WARNING not in warning


def step_of(function, build=inputs):
    model = Net(function)
    return placed_step(model, sgd(model.parameters()), given=(build(), mean))


def test_a_placed_step_refuses_other_values_before_it_runs():
    step = step_of(LOOKS["what a mask selects"])
    step(x=X, m=torch.tensor(MASK))
    before = step.model.layer.weight.clone()
    with pytest.raises(SituateError, match=r"^input 'm' is 1 at \[1\] and was 0 when "):
        step(x=X, m=torch.ones(4, dtype=torch.long))
    assert torch.equal(step.model.layer.weight, before)
    step(x=X, m=torch.tensor(MASK))


def test_a_placed_step_takes_other_values_that_compare_alike():
    step = step_of(lambda model, x, m, labels: model.layer(x)[m == 1])
    step(x=X, m=torch.tensor([1, 7, 1, 1]))
    with pytest.raises(SituateError, match=r"^input 'm' == 1 is False at \[3\] and was True"):
        step(x=X, m=torch.tensor([1, 0, 1, 0]))


def test_a_nested_input_is_named_by_what_leads_to_it():
    def build():
        return X.clone(), {"masks": [torch.tensor(MASK)]}

    def function(model, x, m, labels):
        return model.layer(x)[m["masks"][0].bool()]

    def loss(model, x, m):
        return model(x, m).mean()

    model = Net(function)
    step = placed_step(model, sgd(model.parameters()), given=(build(), loss))
    with pytest.raises(SituateError, match=r"^input 1\['masks'\]\[0\] is 1 at \[1\] and was 0"):
        step(X, {"masks": [torch.ones(4, dtype=torch.long)]})


def test_what_is_refused_all_the_same_is_refused_as_if_nothing_were_known():
    def function(model, x, m, labels):
        y = model.layer(x) * 2 if m.any() else model.layer(x)
        return y * 2 if x.any() else y

    with pytest.raises(SituateError, match="depends on the values") as error:
        captured(function)
    line = function.__code__.co_firstlineno + 1
    assert f"test_input_values.py:{line}: " in str(error.value)


def test_a_warning_says_that_capture_drew_the_values():
    def warning(*seed):
        def build():
            chance = torch.Generator().manual_seed(*seed) if seed else None
            mask = torch.randint(2, (4,), generator=chance).bool()
            return Net(LOOKS["what a mask selects"]), {"x": torch.randn(4, 3), "m": mask}, mean

        [result] = capture(build).warnings
        return result

    drawn_inputs = "they are drawn, by capture here and anew by whatever runs the plan"
    assert drawn_inputs in warning()
    assert drawn_inputs not in warning(3)


@pytest.mark.parametrize("dtype", [None, torch.float64])
def test_numbers_that_the_step_makes_are_read(dtype):
    def step(model, x):
        two, three = torch.tensor([2, 3])
        numbers = torch.tensor([[two, three.max()], [two, 1]], dtype=dtype)
        assert numbers.dtype == (dtype or torch.int64)
        return model.layer(x) * numbers.sum()

    assert of(step).ops


def test_others_are_not_known():
    with pytest.raises(SituateError, match=r"test_input_values.py:\d+: .*values"):
        of(lambda model, x: model.layer(x) * torch.tensor([x.sum(), 1.0]).sum())
