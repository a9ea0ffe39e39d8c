"""Lines on a step of slices beside that of the whole batch."""

from __future__ import annotations

from situate.report.batch_difference import batch_figures, batch_text, is_unexplained
from situate.runtime.whole_batch import BatchDifference

EQUAL = BatchDifference(1e-7, 2e-6, "fc.weight", 1e-3)
UNEQUAL = BatchDifference(0.01234, 0.5, "fc\x1b.weight", 1e-3)
WARNINGS = ("slices: batch normalisation\n (an op of 0)", "memory is short")


def test_equal_steps_are_green():
    text = batch_text(EQUAL, WARNINGS[1:])
    assert text.plain == "Slices against the whole batch: equal but for rounding."
    assert text.style == "green"
    assert not is_unexplained(EQUAL, ())


def test_steps_that_are_equal_once_are_yellow_where_others_may_differ():
    text = batch_text(EQUAL, WARNINGS)
    assert text.plain == (
        "Slices against the whole batch: equal but for rounding in one step without chance; others "
        r"may differ: batch normalisation\n (an op of 0)."
    )
    assert text.style == "yellow"
    assert not is_unexplained(EQUAL, WARNINGS)


def test_a_difference_that_warnings_explain_is_yellow_with_its_reasons():
    text = batch_text(UNEQUAL, WARNINGS)
    assert text.plain == (
        "Slices against the whole batch: the loss differs by 0.0123, gradients by up to 0.5 of "
        r"their largest number, in fc\x1b.weight: batch normalisation\n (an op of 0)."
    )
    assert text.style == "yellow"
    assert not is_unexplained(UNEQUAL, WARNINGS)


def test_a_difference_without_reasons_is_red():
    text = batch_text(UNEQUAL, WARNINGS[1:])
    assert text.plain.endswith("; nothing that situate knows of explains it.")
    assert text.style == "bold red"
    assert is_unexplained(UNEQUAL, WARNINGS[1:])


def test_a_difference_of_the_loss_alone_names_no_parameter():
    batch_difference = BatchDifference(0.25, 0.0, "", 1e-3)
    assert "their largest number;" in batch_text(batch_difference, ()).plain


def test_steps_are_counted_and_buffers_that_differ_are_named():
    steps = BatchDifference(0, 0, "", 1e-3, 2e-6, "norm.mean", 3)
    assert "equal but for rounding in 3 steps without" in batch_text(steps, WARNINGS).plain
    text = batch_text(BatchDifference(0, 0, "", 1e-3, 0.25, "norm\x1b.mean", 3), ())
    assert r"their largest number, buffers by up to 0.25, in norm\x1b.mean; nothing" in text.plain
    assert is_unexplained(BatchDifference(0, 0, "", 1e-3, 0.25, "mean", 3), ())


def test_figures_have_the_difference_and_the_reasons():
    assert batch_figures(UNEQUAL, WARNINGS) == {
        "batch_loss_difference": 0.01234,
        "batch_gradient_difference": 0.5,
        "batch_parameter": "fc\x1b.weight",
        "batch_buffer_difference": 0.0,
        "batch_buffer": None,
        "batch_steps": 1,
        "batch_equal": False,
        "batch_reasons": ["batch normalisation\n (an op of 0)"],
    }
    assert batch_figures(BatchDifference(0, 0, "", 1e-3), ())["batch_parameter"] is None
