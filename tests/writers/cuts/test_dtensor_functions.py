"""Exports to torch.distributed.tensor, run on two and four processes."""

from __future__ import annotations

import importlib.util
import warnings

import pytest

torch = pytest.importorskip("torch")

from situate.writers.dtensor import write  # noqa: E402
from tests.writers.cuts.meshes import TRANSFORMERS, run_rank, stepped  # noqa: E402
from tests.writers.cuts.planned import captured, plan  # noqa: E402
from tests.writers.ranks import start_ranks  # noqa: E402

TOLERANCE = {"rtol": 1e-9, "atol": 1e-12}
"""In double precision, since sums are in another order."""

SINGLE = {"rtol": 1e-5, "atol": 1e-6}
"""Of models of transformers, which compute norms or their loss in single precision."""

COLUMNS = ("heads=2", "features=2", "vocabulary=2")

SPREAD = ("heads=2", "features=2", "sequence=2")

CASES = {
    2: {
        "perceptron": ("perceptron", ("features=2",), {}),
        "columns": ("decoder", COLUMNS, {}),
        "sequence": ("decoder", (*COLUMNS, "sequence=2"), {}),
        "no_heads": ("decoder", ("features=2", "sequence=2"), {}),
        "batch": ("decoder", ("batch=2",), {}),
        "hidden": ("decoder", ("hidden=2",), {}),
        "uneven": ("untied", ("features=2", "vocabulary=2"), {}),
        "llama": ("llama", (*COLUMNS, "sequence=2"), {}),
        "fused_split": ("gpt2", COLUMNS, {}),
        "fused_slices": ("phi3", (*COLUMNS, "sequence=2"), {}),
    },
    4: {
        "quarters": ("decoder", ("heads=4", "features=4", "vocabulary=4"), {}),
        "spread": ("decoder", SPREAD, {"shares": (1, 1, 1, 1)}),
        "copies": ("decoder", ("features=2",), {"shares": (2, 2), "replicas": (1, 1)}),
        "fused_spread": ("fused", SPREAD, {"shares": (1, 1, 1, 1)}),
    },
}
"""By number of processes and name: the model, its cuts and its slices."""


@pytest.fixture(scope="module", params=CASES)
def results(request, tmp_path_factory):
    """By name, the model and the results of all exports that run on as many processes."""
    count, folder = request.param, tmp_path_factory.mktemp("exports")
    files = []
    for name, (build, cuts, slices) in CASES[count].items():
        if build in TRANSFORMERS and importlib.util.find_spec("transformers") is None:
            continue
        graph = captured(build, *cuts, **slices)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            write(*plan(graph, count), folder / f"{name}.py")
        files.append((f"{name}.py", build, len(slices.get("shares", ())) // 2))
    start_ranks(run_rank, (str(folder), count, files), count)
    return {file: (build, torch.load(folder / f"{file}.result")) for file, build, _ in files}


# Tensor and sequence parallelism, FSDP and copies over teams train the model that is not cut.
def test_a_step_over_a_mesh_equals_the_step_of_the_uncut_model(results) -> None:
    for file, (build, (value, gradients, parameters)) in results.items():
        near = SINGLE if build in TRANSFORMERS else TOLERANCE
        loss, expected, updated = stepped(build)
        torch.testing.assert_close(value, loss.to(value.dtype), **near)
        assert gradients.keys() == expected.keys()
        for name, gradient in expected.items():
            # Fused weights have a dimension for their ranges.
            own = gradients[name].reshape(gradient.shape)
            torch.testing.assert_close(own, gradient, **near, msg=f"{file} {name}")
            # The first update of AdamW has the sign of the gradient alone, where it is near 0.
            near_update = {"rtol": 0, "atol": 1e-4}
            own = parameters[name].reshape(gradient.shape)
            torch.testing.assert_close(own, updated[name].detach(), **near_update)
