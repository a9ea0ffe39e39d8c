"""The answer of `situate fit`."""

from __future__ import annotations

import pytest

SIZES = "layers=32,hidden=4096,heads=32,kv=8,ffn=14336,vocab=128256"


def test_it_says_whether_a_run_fits_and_what_helps(situate):
    run = situate("fit", SIZES, "--gpu", "24GiB")
    assert run.status == 3
    for text in ("does not fit", "99 of 100 runs below", "moments", "LoRA on 4-bit weights", "yes"):
        assert text in run.out


def test_a_run_that_fits_has_status_0(situate):
    options = ("--lora", "16", "--weights", "4-bit", "--checkpointing", "--fused-loss")
    content = situate("fit", SIZES, "--gpu", "RTX 4090", *options, "--json").json
    assert content["fits"] is True
    assert content["bytes"] < 24 * 2**30
    assert situate("fit", SIZES, "--gpu", "RTX 4090", *options).status == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--gpu", "big"), "no GPU 'big' in the table: give its memory, such as 24GiB"),
        (("--gpu", "RTX 4091"), "did you mean 'RTX 4090'?"),
        (("--gpu", "2xRTX 4090"), "fit prices one GPU"),
        (("--gpu", "0GiB"), "must have memory"),
        (("--gpu", "24GiB", "--weights", "4-bit"), "give --lora"),
        (("--gpu", "24GiB", "--optimizer", "adamx"), "unknown optimizer"),
        (("--gpu", "24GiB", "--recipe", "jax"), "unknown recipe"),
    ],
)
def test_bad_input_is_one_line(situate, options, message):
    run = situate("fit", SIZES, *options)
    assert run.status == 2
    assert message in run.err
    assert run.err.count("\n") == 1
