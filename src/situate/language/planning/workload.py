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
MAX_GUESSES = 64

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
class Drafting:
    """A smaller model that guesses tokens, which the large one checks in one pass.

    Attributes:
        model: path of the file.
        name: of the model.
        device: name of its device, which holds all of it.
        bytes: on that device.
        host_bytes: in host memory beside it.
        tokens: guesses before each pass of the large model.
        acceptance: probability that a guess is right.
        seconds: of a guess.
        prefill: seconds of the prompt in the small model.

    Raises:
        SituateError: a number is out of range.
    """

    model: str
    name: str
    device: str
    bytes: int
    host_bytes: int
    tokens: int = 3
    acceptance: float = 0.7
    seconds: float = 0.0
    prefill: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.tokens <= MAX_GUESSES:
            raise SituateError(f"draft tokens: must be 1 to {MAX_GUESSES}, got {self.tokens}")
        if not 0 <= self.acceptance <= 1:
            raise SituateError(f"draft acceptance: must be 0 to 1, got {self.acceptance}")

    @property
    def tokens_a_pass(self) -> float:
        """Tokens that a pass of the large model yields, in the mean.

        The sum of a^i for i from 0 to the number of guesses (Leviathan, Kalman and Matias 2023,
        arXiv:2211.17192, Eq. 1).
        """
        return sum(self.acceptance**i for i in range(self.tokens + 1))


@dataclass(frozen=True)
class Workload:
    """A request: a prompt and a reply.

    Attributes:
        prompt, reply: tokens.
        objective: `request` counts the seconds of both, `decode` those of a token of the reply,
            `prefill` those of the prompt; `context` is planned as a request.
        drafting: guesses of a smaller model; None without one.

    Raises:
        SituateError: the objective does not exist, or the request has no tokens.
    """

    prompt: int = 2000
    reply: int = 500
    objective: Objective = "request"
    drafting: Drafting | None = None

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

    @property
    def checked(self) -> int:
        """Tokens of a pass while the model decodes: one, and the guesses."""
        return 1 if self.drafting is None else 1 + self.drafting.tokens

    @property
    def tokens_a_pass(self) -> float:
        """Tokens of the reply that a pass yields, in the mean."""
        return 1 if self.drafting is None else self.drafting.tokens_a_pass

    @property
    def drafting_seconds(self) -> float:
        """The part of the objective in which the smaller model runs."""
        if self.drafting is None:
            return 0.0
        guesses = self.drafting.tokens * self.drafting.seconds / self.tokens_a_pass
        return self.seconds(self.drafting.prefill, guesses)

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
            count = 1 if self.objective == "decode" else self.reply
            yield Pass(count / self.tokens_a_pass, self.checked, self.depth)


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
    decode = decode_seconds(times, layout, work.depth, work.checked) / work.tokens_a_pass
    if work.drafting is not None:
        prefill += work.drafting.prefill
        decode += work.drafting.tokens * work.drafting.seconds / work.tokens_a_pass
    return Speed(prefill, decode, work.seconds(prefill, decode))
