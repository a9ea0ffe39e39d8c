"""The collection of public packages' models: its list, its rows and their sums."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from benchmarks.corpus import listed, parts, totals  # noqa: E402
from benchmarks.corpus.limits import within  # noqa: E402
from benchmarks.corpus.measure import AUTOCAST, Subject, measure, refusal  # noqa: E402

GIB = 2**30


def test_the_list_names_every_configuration_once() -> None:
    names = [configuration.name for configuration in listed.configurations()]
    assert len(names) == len(set(names)) >= 150


def test_a_row_is_told_stage_by_stage() -> None:
    [bert] = [c for c in listed.configurations() if c.name == "BertForMaskedLM"]
    row: dict[str, Any] = {}
    measure(Subject(bert, training=True), row.update, seeds=0)
    assert row["outcome"] == "captured"
    assert row["plan_fits"]
    assert row["map"] in ("within memory", "beyond memory", "said not to be")


@pytest.mark.parametrize(
    ("name", "training", "remedy"),
    [
        ("SEWForSequenceClassification", True, "layerdrop 0, no spec augment"),
        ("ProphetNetForConditionalGeneration", True, "decoder ids"),
        ("DbrxForCausalLM", False, "dense experts"),
        ("RwkvForCausalLM", False, "no scaling of layers"),
        ("Idefics3ForConditionalGeneration", False, "pictures in the step"),
        ("EncodecModel", False, "buffers of numbers"),
        ("AutoformerForPrediction", True, "layerdrop 0, parts infer"),
    ],
)
def test_a_refused_model_is_changed_as_its_messages_say(
    name: str, training: bool, remedy: str
) -> None:
    [refused] = [c for c in listed.configurations() if c.name == name]
    row: dict[str, Any] = {}
    measure(Subject(refused, training), row.update, seeds=0)
    assert row["outcome"] == "refused"
    assert row["remedied"]
    assert row["remedy"] == remedy


def test_a_row_names_the_inputs_that_are_looked_at() -> None:
    [looks] = [c for c in listed.configurations() if c.name == "LEDForConditionalGeneration"]
    row: dict[str, Any] = {}
    measure(Subject(looks, training=False), row.update, seeds=0)
    assert (row["outcome"], row["values_of"]) == ("captured", "'attention_mask'")


def test_experts_that_compute_every_token_give_what_those_do_that_they_replace() -> None:
    for name in ("DbrxForCausalLM", "SwitchTransformersForConditionalGeneration"):
        [moe] = [c for c in listed.configurations() if c.name == name]
        model, inputs, loss = moe.build(False)
        model.eval()
        kind = "DbrxExperts" if "Dbrx" in name else "SwitchTransformersExperts"
        with torch.no_grad():
            before = model(**inputs)[0]
            parts.dense_experts((model, inputs, loss), f"in the place of its {kind} that computes")
            after = model(**inputs)[0]
        assert not any(type(module).__name__ == kind for module in model.modules())
        torch.testing.assert_close(before, after)


def test_a_training_step_that_can_only_be_planned_as_inference_is_not_captured() -> None:
    [refused] = [c for c in listed.configurations() if c.name == "ReformerModelWithLMHead"]
    row: dict[str, Any] = {}
    measure(Subject(refused, training=True), row.update, seeds=0)
    assert not row["remedied"]
    assert row["remedy"] == "inference only, after nothing else"


def test_what_a_process_told_before_it_hung_is_kept() -> None:
    def hang(tell: Any) -> None:
        tell({"outcome": "captured", "stage": "verify"})
        time.sleep(60)

    row = within(hang, 0.5, 64 * GIB)
    assert row == {"outcome": "wrong", "message": "verify: not done in 0.5 s"}


def test_a_process_that_crashes_is_a_row() -> None:
    def crash(tell: Any) -> None:
        tell({"stage": "capture"})
        os._exit(7)

    row = within(crash, 30.0, 64 * GIB)
    assert row == {"outcome": "wrong", "message": "capture: ended with status 7"}


def test_what_raises_anything_else_than_a_refusal_is_wrong() -> None:
    def fail(tell: Any) -> None:
        raise KeyError("val")

    assert within(fail, 30.0, 64 * GIB) == {"outcome": "wrong", "message": "raised KeyError: 'val'"}


def test_a_process_that_ends_well_has_told_its_row() -> None:
    row = within(lambda tell: tell({"outcome": "captured", "stage": "end"}), 30.0, 64 * GIB)
    assert row == {"outcome": "captured"}


@pytest.mark.parametrize(
    ("message", "line", "remedy"),
    [
        ("m: capturing the step: a/b.py:12: values decide here: use torch.where", True, True),
        ("m: capturing the step: values decide here: give is_causal=", False, True),
        ("m: capturing the step: a/b.py:12: RuntimeError: expected: use integers", True, False),
        ("m: capturing the step: a/b.py:12: this is not captured", True, False),
    ],
)
def test_a_refusal_names_line_and_remedy_or_not(message: str, line: bool, remedy: bool) -> None:
    result = refusal(message)
    assert (result["names_line"], result["names_remedy"]) == (line, remedy)


def row(**known: Any) -> dict[str, Any]:
    plain = {"name": "n", "package": "p", "kind": "k", "phase": "training", "outcome": "captured"}
    return plain | {"map": "within memory", "verify": "equal"} | known


def test_totals_count_what_pytorch_can_run() -> None:
    rows = [row(), row(phase="inference"), row(outcome="invalid", map=None, verify=None)]
    assert all(target.met for target in totals.targets(rows))
    [kind] = totals.kinds(rows)
    assert (kind["captured"], kind["invalid"]) == (2, 1)


@pytest.mark.parametrize(
    "bad",
    [
        {"outcome": "refused", "names_line": True, "names_remedy": False, "map": None},
        {"outcome": "wrong", "map": None, "verify": None},
        {"map": "beyond memory"},
        {"verify": "differs"},
        {"verify": "refused"},
    ],
)
def test_a_row_that_is_not_as_promised_misses_a_target(bad: dict[str, Any]) -> None:
    rows = [row(phase=phase) for phase in ("training", "inference")]
    assert not all(target.met for target in totals.targets([*rows, row(**bad)]))


def test_models_under_autocast_are_counted_beside_those_without() -> None:
    def row(phase: str, outcome: str, verify: str | None) -> dict[str, Any]:
        refusal = {"names_line": True, "names_remedy": True}
        return {"name": "m", "phase": phase, "outcome": outcome, "verify": verify, **refusal}

    plain, cast = "training", f"training{AUTOCAST}"
    [*_, counted] = totals.targets([row(plain, "captured", "equal"), row(cast, "refused", None)])
    assert (counted.measured, counted.met) == ("0 of 1; 1 without", False)
    [*_, counted] = totals.targets(
        [row(plain, "captured", "equal"), row(cast, "captured", "within tolerance")]
    )
    assert (counted.measured, counted.met) == ("1 of 1; 1 without", True)


def test_a_model_is_captured_under_autocast() -> None:
    [bert] = [c for c in listed.configurations() if c.name == "BertForMaskedLM"]
    graph = Subject(bert, training=True, autocast=True).capture()
    assert any(op.dtype == "bfloat16" for op in graph.ops)
