"""Speculative decoding: the device of a draft model, beside the plan of the model it drafts for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from situate.errors import PlanError, SituateError
from situate.language.cache import CacheOptions
from situate.language.home import Home
from situate.language.layer_seconds import Timetable
from situate.language.layout import HOST, Layout
from situate.language.model import LanguageModel
from situate.language.planning.capacity import memory_of
from situate.language.planning.planner import Planner
from situate.language.planning.workload import Drafting
from situate.language.speed import decode_seconds, prefill_seconds

VOCABULARY_DIFFERENCE = 128
"""Most tokens by which the vocabularies of the two models differ
(`SPEC_VOCAB_MAX_SIZE_DIFFERENCE`)."""

UBATCH = 512


@dataclass(frozen=True)
class Draft:
    """A draft model and its settings.

    Attributes:
        model: the smaller model.
        path: of its file.
        tokens, acceptance: as in `Drafting`.
    """

    model: LanguageModel
    path: str
    tokens: int = 3
    acceptance: float = 0.7

    def check(self, model: LanguageModel) -> None:
        """
        Raises:
            SituateError: the model that it drafts for has another vocabulary.
        """
        mine, other = self.model.sizes.vocabulary, model.sizes.vocabulary
        if abs(mine - other) > VOCABULARY_DIFFERENCE:
            raise SituateError(
                f"--draft {self.path}: has a vocabulary of {mine:,} tokens, and {model.name} one "
                f"of {other:,}: take a draft of the same family"
            )


def with_draft(planner: Planner, draft: Draft) -> Planner:
    """The planner of a home that holds a draft too, where the plan is fastest.

    Args:
        planner: without the draft.
        draft: on one GPU or on the host, wholly.

    Raises:
        SituateError: vocabularies differ, or no device holds the draft beside the model.
    """
    draft.check(planner.model)
    ubatches = _usual_ubatch(planner)
    best: tuple[float, Planner] | None = None
    for drafting in places(planner, draft):
        other = replace(
            planner,
            home=home_beside(planner.home, drafting),
            work=replace(planner.work, drafting=drafting),
        )
        try:
            seconds = replace(other, ubatches=ubatches).plan().seconds
        except PlanError:
            continue
        if best is None or seconds < best[0]:
            best = seconds, other
    if best is None:
        raise PlanError(
            f"--draft {draft.path}: no device of {planner.home.name} holds it beside "
            f"{planner.model.name}: take a smaller draft, or leave it out"
        )
    return best[1]


def _usual_ubatch(planner: Planner) -> tuple[int, ...]:
    """The ubatch of the plan without a draft, by which places of the draft are compared."""
    try:
        return (planner.plan().layout.ubatch,)
    except PlanError:
        return planner.ubatches


def places(planner: Planner, draft: Draft) -> Iterator[Drafting]:
    """The draft on one GPU of each kind, and on the host, with its bytes and seconds."""
    home, work = planner.home, planner.work
    options = CacheOptions(planner.options.context, ubatch=UBATCH, slots=planner.options.slots)
    times = Timetable(draft.model, home, options)
    heads = [gpu for gpu, kind in enumerate(planner.kinds) if gpu == kind]
    for device in (*heads, HOST):
        layers = (device,) * len(draft.model.layers)
        order = () if device == HOST else (device,)
        layout = Layout(order, layers, layers, device, ubatch=UBATCH)
        memory = memory_of(draft.model, layout, options, home)
        here, host = memory[device], memory[HOST]
        if here.total + here.margin > home.processors[device].memory:
            continue
        yield Drafting(
            draft.path,
            draft.model.name,
            home.processors[device].name,
            # The GPU's context is there already.
            here.total - here.context + here.margin,
            0 if device == HOST else host.total + host.margin,
            draft.tokens,
            draft.acceptance,
            decode_seconds(times, layout, work.depth),
            prefill_seconds(times, layout, work.prompt),
        )


def home_beside(home: Home, drafting: Drafting) -> Home:
    """The home without the memory of a draft model.

    Raises:
        PlanError: its device is none of the home's.
    """
    names = [processor.name for processor in home.processors]
    if drafting.device not in names:
        raise PlanError(f"the draft is on {drafting.device!r}, which {home.name} does not have")
    device = names.index(drafting.device)
    accelerators = tuple(
        replace(gpu, memory=max(gpu.memory - drafting.bytes, 0)) if i == device else gpu
        for i, gpu in enumerate(home.accelerators)
    )
    on_host = drafting.host_bytes + (drafting.bytes if device == len(accelerators) else 0)
    host = replace(home.host, memory=max(home.host.memory - on_host, 0))
    return replace(home, accelerators=accelerators, host=host)
