"""Every failure in a step, or where it is built, gives one line of situate's own."""

from __future__ import annotations

import re

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from situate.torch_capture.refusals import remedies  # noqa: E402
from tests.torch_capture.going_wrong import FINE, WITHOUT_A_LINE, WRONG, Model, Step, Straight  # noqa: E402

INTERNAL = re.compile(
    r"FakeTensor|[Pp]roxy|functorch|SymInt|\bu\d+\b|aten|\.cpp|packages/torch/|https?:|unbacked|\n"
)


def of(step: Step, training: bool = True) -> object:
    return capture(lambda: (Model(step), torch.randn(6, 4), None), training=training, name="net")


# Each kind of failure has situate's own message with the line.
@pytest.mark.parametrize("case", WRONG)
def test_the_line_is_named_and_the_remedy_is_the_products(case):
    step, answer = WRONG[case]
    with pytest.raises(SituateError) as error:
        of(step)
    message = str(error.value)
    assert re.match(r"net: capturing the step: tests/torch_capture/going_wrong\.py:\d+: ", message)
    assert answer in message
    assert not INTERNAL.search(message)


@pytest.mark.parametrize("case", WITHOUT_A_LINE)
def test_what_belongs_to_no_line_is_said_of_the_step(case):
    step, answer = WITHOUT_A_LINE[case]
    with pytest.raises(SituateError) as error:
        of(step)
    assert str(error.value).startswith(f"net: {answer}")
    assert not INTERNAL.search(str(error.value))


@pytest.mark.parametrize("case", [case for case in WRONG if WRONG[case][1] == remedies.SHAPES])
def test_inference_gives_the_same_answers(case):
    with pytest.raises(SituateError, match=re.escape(remedies.SHAPES)):
        of(WRONG[case][0], training=False)


# Errors of the program keep their own text.
@pytest.mark.parametrize("case", FINE)
def test_what_looks_wrong_and_is_not_is_captured(case):
    assert of(FINE[case])


@pytest.mark.parametrize(
    ("build", "answer"),
    [
        (lambda: nn.Linear(3, 3)(torch.ones(2, 4)), "RuntimeError: "),
        (lambda: nn.Lineer(3, 3), "AttributeError: module 'torch.nn' has no attribute 'Lineer'"),
        (lambda: torch.ones(2).view(3), "RuntimeError: shape '[3]' is invalid"),
        (lambda: torch.ones(2)[5], "IndexError: index 5 is out of bounds"),
        (lambda: torch.load("/no/such/file"), "FileNotFoundError: "),
        (lambda: torch.ones(2).to("nowhere"), "RuntimeError: "),
        (lambda: Straight.forward(), "TypeError: "),
    ],
)
def test_what_fails_where_a_model_is_built_is_the_programs_own_error(build, answer):
    with pytest.raises(SituateError) as error:
        capture(lambda: (build(), None, None), name="net")
    assert re.match(r"net: building the model: .*test_remedies\.py:\d+: ", str(error.value))
    assert answer in str(error.value)
    assert not INTERNAL.search(str(error.value))


def test_a_kind_that_is_not_known_is_still_no_message_of_pytorchs():
    def raised(text):
        return remedies.remedy(RuntimeError(text))

    assert raised("u0 is not tracked with proxy for <torch.fx.Tracer>") == remedies.UNTRACED
    assert raised("/build/aten/src/Register.cpp:82: expected something") == remedies.UNTRACED
    assert raised("see https://pytorch.org/forums") == remedies.UNTRACED
    assert raised("the heads must divide the width") == ""


def test_what_a_program_raises_itself_is_quoted():
    with pytest.raises(RuntimeError) as error:
        raise RuntimeError("aten::u0 of my own")
    assert remedies.remedy(error.value) == ""
