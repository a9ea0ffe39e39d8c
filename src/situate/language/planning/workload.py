"""The work that a plan of a language model is made for, and its seconds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from situate.errors import SituateError, nearest
from situate.language.layer_seconds import Timetable
from situate.language.layout import Layout
from situate.language.speed import decode_seconds, prefill_seconds

Objective = Literal["request", "decode", "prefill", "context"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)


@dataclass(frozen=True)
class Pass:
    """Passes of tokens through the model.

    Attributes:
        count: number of passes; 0 if they do not count.
        tokens: of each pass.
        depth: tokens in the cache before them, in the mean.
    """

    count: float
    tokens: int
    depth: int


@dataclass(frozen=True)
class Workload:
    """A request: a prompt and a reply.

    Attributes:
        prompt, reply: tokens.
        objective: `request` counts the seconds of both, `decode` those of a token of the reply,
            `prefill` those of the prompt; `context` is planned as a request.

    Raises:
        SituateError: the objective does not exist, or the request has no tokens.
    """

    prompt: int = 2000
    reply: int = 500
    objective: Objective = "request"

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            hint = nearest(self.objective, OBJECTIVES)
            raise SituateError(f"unknown objective {self.objective!r}{hint}")
        for name in ("prompt", "reply"):
            if getattr(self, name) < 1:
                raise SituateError(f"{name}: must be at least 1, got {getattr(self, name)}")

    @property
    def depth(self) -> int:
        """Tokens in the cache in the middle of the reply."""
        return self.prompt + self.reply // 2

    def seconds(self, prefill: float, decode: float) -> float:
        """The objective, from the seconds of the prompt and of one token of the reply."""
        if self.objective == "decode":
            return decode
        if self.objective == "prefill":
            return prefill
        return prefill + self.reply * decode

    def passes(self, ubatch: int) -> Iterator[Pass]:
        """The passes that the objective counts, with their weights."""
        if self.objective != "decode":
            whole, rest = divmod(self.prompt, ubatch)
            for count, tokens in ((whole, ubatch), (1, rest)):
                if count and tokens:
                    yield Pass(count, tokens, max(self.prompt - ubatch, 0) // 2)
        if self.objective != "prefill":
            yield Pass(1 if self.objective == "decode" else self.reply, 1, self.depth)


class Speed(NamedTuple):
    """Seconds of a layout.

    Attributes:
        prefill: of the prompt.
        decode: of one token of the reply.
        objective: the quantity to minimise.
    """

    prefill: float
    decode: float
    objective: float


def speed_of(times: Timetable, layout: Layout, work: Workload) -> Speed:
    """The seconds of a workload on a layout."""
    prefill = prefill_seconds(times, layout, work.prompt)
    decode = decode_seconds(times, layout, work.depth)
    return Speed(prefill, decode, work.seconds(prefill, decode))
