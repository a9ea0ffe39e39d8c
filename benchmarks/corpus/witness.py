"""The seconds in which a step of slices is tried on random numbers, of large models: GPT-2,
ResNet-50, Llama 7B and Llama 3 8B."""

from __future__ import annotations

import argparse
import time

import torch

from benchmarks.lib.record import Row, Target, record
from situate.data.slices import Slices
from situate.torch_capture.build import Build, build_fake
from situate.torch_capture.slices.cut import cut_inputs
from situate.torch_capture.slices.traces import Traces
from situate.torch_capture.slices.witness import witness
from situate.zoo import transformer
from situate.zoo.networks import NETWORKS

SECONDS_WANTED = 5


def llama3_8b() -> transformer.Built:
    """Llama 3 8B (Llama Team, 2024), without weights."""
    config = transformer.transformers.LlamaConfig(
        vocab_size=128_256,
        intermediate_size=14_336,
        num_key_value_heads=8,
        rope_theta=500_000.0,
    )
    model = transformer.from_config(
        transformer.transformers.AutoModelForCausalLM, config, torch.bfloat16
    )
    return model, transformer.tokens(config.vocab_size, 4, 2048), transformer.language_loss


STEPS: dict[str, Build] = {
    "gpt2": NETWORKS["gpt2"].build,
    "resnet50": NETWORKS["resnet50"].build,
    "llama_7b": lambda: transformer.llama_7b(batch=4),
    "llama3_8b": llama3_8b,
}


def main(arguments: list[str] | None = None) -> None:
    """Capture, try, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", nargs="+", choices=list(STEPS), default=list(STEPS))
    parser.add_argument("--repetitions", type=int, default=3, help="the median counts")
    options = parser.parse_args(arguments)
    rows = [_row(name, options.repetitions) for name in options.steps]
    slowest = max(row["seconds"] for row in rows)
    tried = all(row["samples"] is not None for row in rows)
    record(
        "witness",
        {"steps in two slices": rows},
        [
            Target(
                "seconds to try a step",
                f"at most {SECONDS_WANTED}",
                f"{slowest:.1f}",
                tried and slowest <= SECONDS_WANTED,
            )
        ],
        options=options,
    )


def _row(name: str, repetitions: int) -> Row:
    begin = time.perf_counter()
    traces = Traces(build_fake(STEPS[name], name), name)
    cut = cut_inputs(traces.fake, Slices((1, 1)))
    part = traces.parts(cut)[0]
    capture_seconds = time.perf_counter() - begin
    seconds = []
    for _ in range(repetitions):
        begin = time.perf_counter()
        trial = witness(traces.fake, part, cut.axes, "mean")
        seconds.append(time.perf_counter() - begin)
    return {
        "step": name,
        "seconds": sorted(seconds)[repetitions // 2],
        "samples": trial and trial.samples,
        "difference": trial and trial.difference,
        "tolerance": trial and trial.tolerance,
        "capture_seconds": capture_seconds,
    }


if __name__ == "__main__":
    main()
