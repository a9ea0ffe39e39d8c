"""The answer of `situate fit`."""

from __future__ import annotations

import re

from situate.cli.answer import print_json, print_table
from situate.cli.language.options import TuningOptions
from situate.cli.language.training_models import find_transformer
from situate.cli.terminal import INFEASIBLE
from situate.errors import SituateError
from situate.files.contents import one_line
from situate.language.training.fine_tuning import TuningRun, changes, tuning_memory
from situate.language.training.gpus import Gpu, unknown_gpu
from situate.language.training.machine import gpu_of_text
from situate.report.training import tuning_figures, tuning_table


def show_fit(path: str, gpu: str, options: TuningOptions, as_json: bool) -> int:
    """Print the memory of a run, and that with changes.

    Raises:
        SituateError: the model or the GPU does not exist, or choices exclude one another.
    """
    card = _card(gpu.strip())
    model = find_transformer(path)
    run = TuningRun(
        batch=options.batch,
        sequence=options.seq,
        optimizer=options.optimizer,
        rank=options.lora,
        weights=options.weights,
        checkpointing=options.checkpointing,
        fused_loss=options.fused_loss,
        recipe=options.recipe,
    )
    roles = tuning_memory(model, run)
    rows = changes(model, run)
    if as_json:
        print_json({"model": model.name, **tuning_figures(card, roles, rows)})
    else:
        print_table(tuning_table(model, card, roles, rows))
    return 0 if sum(roles.values()) <= card.memory else INFEASIBLE


def _card(text: str) -> Gpu:
    """The GPU of a name or of a memory.

    Raises:
        SituateError: the text names no GPU, or several.
    """
    card = gpu_of_text(text)
    if card is None and re.match(r"\d+\s*x\s*\D", text):
        raise SituateError(
            one_line(f"--gpu {text[:40]!r}: fit prices one GPU; plan --layout prices several")
        )
    if card is None:
        raise SituateError(one_line(f"--gpu: {unknown_gpu(text)}"))
    if card.memory <= 0:
        raise SituateError(one_line(f"--gpu {text[:40]!r}: must have memory"))
    return card
