"""Layouts by the rules of other tools."""

from __future__ import annotations

from situate.language.layout import HOST
from situate.language.planning.rivals import rivals
from tests.language.planning.homes import home_with, planner_of, small_model


def layouts(planner):
    return {name: plan.layout for name, plan in rivals(planner)}


# Where everything fits, every rule but the CPU's puts it on the GPUs in their order.
def test_a_model_that_fits_is_shared_by_memory():
    rows = layouts(planner_of(small_model(False), home_with((6, 400, 25), (2, 400, 25))))
    assert rows["--fit"].layers == rows["by memory"].layers == (0, 0, 0, 0)
    assert rows["by memory"].output == 1
    assert "experts on CPU" not in rows


def test_experts_on_the_cpu_leave_the_rest_on_gpus():
    layout = layouts(planner_of(small_model(), home_with((6, 400, 25))))["experts on CPU"]
    assert set(layout.experts) == {HOST}
    assert set(layout.layers) == {0}


# Where memory is short, `--fit` fills the last GPU first, and leaves a GiB on each.
def test_fit_leaves_layers_of_a_dense_model_on_the_host():
    home = home_with((1.03, 400, 25), host=(8, 50))
    rows = layouts(planner_of(small_model(False), home))
    offloaded = [device == 0 for device in rows["--fit"].layers]
    assert offloaded == sorted(offloaded)
    assert sum(offloaded) < sum(device == 0 for device in rows["by memory"].layers)


def test_a_home_without_gpus_has_no_rivals():
    assert layouts(planner_of(small_model(), home_with())) == {}
