"""The answer of `situate fit`."""

from __future__ import annotations

from situate.cli.answer import print_json, print_table
from situate.cli.language.options import TuningOptions
from situate.cli.language.training_models import find_transformer
from situate.cli.terminal import INFEASIBLE
from situate.errors import SituateError, nearest
from situate.files.contents import one_line
from situate.language.training.fine_tuning import TuningRun, changes, tuning_memory
from situate.language.training.gpus import GPUS
from situate.language.training.machine import gpu_of_text
from situate.report.training import tuning_figures, tuning_table


def show_fit(path: str, gpu: str, options: TuningOptions, as_json: bool) -> int:
    """Print the memory of a run, and that with changes.

    Raises:
        SituateError: the model or the GPU does not exist, or choices exclude one another.
    """
    card = gpu_of_text(gpu.strip())
    if card is None:
        hint = nearest(gpu, GPUS)
        raise SituateError(one_line(f"--gpu {gpu[:40]!r}: is no memory such as 24GiB{hint}"))
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
