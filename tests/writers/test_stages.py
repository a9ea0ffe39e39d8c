"""A plan's layers as stages of a pipeline."""

from __future__ import annotations

import warnings

import pytest

from situate.writers.stages import NotAPipeline, stages
from tests.report.handmade import schedule
from tests.writers.layered import layered_plan, network


def test_stages_are_runs_of_layers():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = stages(*layered_plan([0, 0, 0, 0, 1, 1, 2, 2, 2]))
    assert result.counts == (3, 2, 1)
    assert result.names == ("gpu0", "gpu1", "gpu2")
    assert result.environment == {}


def test_devices_in_another_order_are_numbered_anew():
    result = stages(*layered_plan([2, 2, 2, 0, 0, 0, 0, 0, 0]))
    assert result.counts == (2, 4)
    assert result.environment == {"CUDA_VISIBLE_DEVICES": "2,0"}


def test_devices_of_other_kinds_have_no_number():
    kinds = ("tpu", "cpu", "gpu", "gpu")
    assert stages(*layered_plan([2, 2, 2, 2, 2, 3, 3, 3, 3], kinds=kinds)).environment == {}
    result = stages(*layered_plan([3, 3, 3, 3, 3, 2, 2, 2, 2], kinds=kinds))
    assert result.environment == {"CUDA_VISIBLE_DEVICES": "1,0"}


def test_a_device_that_comes_back_is_refused_with_the_layer():
    with pytest.raises(NotAPipeline, match=r"'model\.layers\.3' goes back to 'gpu0'.*pipeline"):
        stages(*layered_plan([0, 0, 0, 1, 0, 0, 0, 0, 0]))


def test_a_stage_on_a_cpu_is_refused():
    with pytest.raises(NotAPipeline, match=r"'model\.layers\.4' is on 'cpu1'"):
        stages(*layered_plan([0, 0, 0, 0, 0, 1, 1, 1, 1], kinds=("gpu", "cpu")))


@pytest.mark.parametrize(
    ("devices", "warning"),
    [
        ([1, 0, 0, 0, 1, 1, 1, 1, 1], r"first stage takes.*model\.embed_tokens \(on gpu1\)"),
        ([0, 0, 0, 0, 1, 1, 1, 0, 1], r"last stage takes.*model\.norm \(on gpu0\)"),
    ],
)
def test_what_is_elsewhere_than_its_stage_is_said(devices: list[int], warning: str):
    problem, plan = layered_plan(devices)
    with pytest.warns(UserWarning, match=warning):
        stages(problem, plan)


def test_a_layer_that_is_split_is_said():
    problem = network(("layers.0.a", "layers.0.b", "layers.1"))
    with pytest.warns(UserWarning, match=r"splits 1 module over devices \(layers\.0\)"):
        stages(problem, schedule(problem, [0, 1, 1]))


def test_what_the_pipeline_comes_to_is_said_where_it_is_not_the_plan():
    problem = network(("layers.0.a", "layers.0.b", "layers.1"), persistent=(20, 30, 20), memory=50)
    with pytest.warns(UserWarning, match="of the pipeline") as message:
        stages(problem, schedule(problem, [0, 1, 0]))
    lines = [str(warning.message) for warning in message]
    assert lines[-2].startswith("of the pipeline: predicted step")
    assert lines[-1] == "the pipeline does not fit: gpu1 by 16 B"
