"""dnn-partitioning's graphs with its authors' results."""

from __future__ import annotations

import pytest

from situate.bench.best_known import BestKnown
from situate.bench.families.dnn_partitioning import latency, throughput
from situate.bench.rows import RowFile
from situate.bench.run import Bench
from tests.bench.families.test_families import DATA
from tests.bench.small import runs

FOLDER = DATA / "dnn-partitioning"


def test_published_values_are_in_seconds_and_say_who_found_them():
    first = throughput(FOLDER)[0]
    assert first.reference.value == pytest.approx(0.0177899)
    assert "Tarnawski" in first.reference.source
    assert first.reference.bound is None  # other splits than contiguous ones may be better


def test_bert_of_layers_is_proved_and_resnet_is_not():
    by_name = {instance.name: instance.reference for instance in latency(FOLDER)}
    bert, resnet = (
        by_name["LayerGraphs/bert24_inference"],
        by_name["LayerGraphs/resnet50_inference"],
    )
    assert bert.bound == bert.value
    assert resnet.bound is None


def test_no_bound_is_above_a_published_value():
    """Whatever single plan is looked at, its bound is compared with the published value."""
    table = BestKnown()
    rows = [*Bench(runs(*throughput(FOLDER)[:1], *latency(FOLDER)[:1]), RowFile(), table).run()]
    assert all(row.lower_bound is not None or not row.feasible for row in rows)
    assert len(table.entries) == 2
