"""Requests to plan a language model: from the options that were typed to a planner."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import typer

from situate.cli.language.options import LanguageOptions
from situate.cli.option_groups import refuse_others
from situate.cli.terminal import note
from situate.data.cluster import Cluster
from situate.errors import SituateError
from situate.language import read_language_model
from situate.language.cache import MAX_CONTEXT, CacheOptions, cache_type
from situate.language.home import home_of
from situate.language.model import LanguageModel
from situate.language.planning.drafting import Draft, with_draft
from situate.language.planning.planner import Planner
from situate.language.planning.workload import Workload

if TYPE_CHECKING:
    from situate.cli.search_options import ProblemOptions

COMMON = ("model", "cluster", "objective", "quant", "context", "prompt", "reply", "slots")
DRAFT = ("draft", "draft_tokens", "draft_acceptance")
ALLOWED = {
    "plan": (*COMMON, *DRAFT, "cache_type", "out", "picture", "as_json"),
    "compare": (*COMMON, *DRAFT, "cache_type", "out", "as_json", "flags"),
    "explain": (*COMMON, *DRAFT, "cache_type", "plan", "as_json"),
}
"""Options of a command that language models have."""

REASON = "has no meaning for a language model, which is planned by one exact method: leave it out"

PROMPT, REPLY, CONTEXT = 2000, 500, 4096


def check_options(context: typer.Context, command: str) -> None:
    """
    Raises:
        SituateError: an option was typed that is for other models.
    """
    refuse_others(context, (*ALLOWED[command], "config"), REASON)


@dataclass(frozen=True)
class Request:
    """A planner for the options of a command.

    Attributes:
        planner: with the model, the home and the work.
        draft: a smaller model that guesses tokens, not yet on the home.
    """

    planner: Planner
    draft: Draft | None = None

    def with_draft(self) -> Planner:
        """The planner with the draft on the home, if there is one.

        Raises:
            SituateError: the draft has another vocabulary, or no room.
        """
        if self.draft is None:
            return self.planner
        planner = self.planner
        if planner.work.objective != "context":
            return with_draft(planner, self.draft)
        # The draft's cache may have to be as long as the longest context.
        slots, most = planner.options.slots, planner.model.sizes.context
        options = replace(planner.options, context=min(slots * (most or MAX_CONTEXT), MAX_CONTEXT))
        longest = with_draft(replace(planner, options=options), self.draft)
        return replace(longest, options=planner.options)


def read_request(model: str, problem: ProblemOptions, language: LanguageOptions) -> Request:
    """The planner of a command.

    Raises:
        SituateError: the model or the cluster cannot be read, or the request cannot be.
    """
    network = read_language_model(model, language.quant)
    for warning in network.warnings:
        note(f"warning: {warning}")
    if problem.cluster is None:
        raise SituateError(
            f"{model}: give --cluster, a TOML file that describes the machine; 'situate cluster "
            "discover' writes one"
        )
    home = home_of(Cluster.find(problem.cluster))
    objective: Any = "request" if problem.objective == "time" else problem.objective
    kind = "F16" if language.cache_type is None else cache_type(language.cache_type).name
    slots = language.slots or 1
    work = _workload(language, objective, network, slots)
    tokens = language.context or max(CONTEXT, slots * (work.prompt + work.reply))
    if network.sizes.context and language.context is None:
        tokens = min(tokens, slots * network.sizes.context)
    options = CacheOptions(tokens, kind, kind, slots=slots)
    planner = Planner(network, home, options, work)
    planner.check()
    return Request(planner, _draft(language))


def _workload(
    language: LanguageOptions, objective: Any, model: LanguageModel, slots: int
) -> Workload:
    """The request; the default one is shortened to the context."""
    most = (language.context or slots * (model.sizes.context or 2**31)) // slots
    reply = language.reply or max(1, min(REPLY, most // 5))
    prompt = language.prompt or max(1, min(PROMPT, most - reply))
    return Workload(prompt, reply, objective)


def _draft(language: LanguageOptions) -> Draft | None:
    """
    Raises:
        SituateError: the draft cannot be read, or its settings are without one.
    """
    if language.draft is None:
        for name in DRAFT[1:]:
            if getattr(language, name) is not None:
                option = name.replace("_", "-")
                raise SituateError(f"--{option}: needs a smaller model: give --draft FILE")
        return None
    quant = None if language.draft.endswith(".gguf") else language.quant
    draft = Draft(read_language_model(language.draft, quant), language.draft)
    tokens, acceptance = language.draft_tokens, language.draft_acceptance
    return replace(
        draft,
        tokens=draft.tokens if tokens is None else tokens,
        acceptance=draft.acceptance if acceptance is None else acceptance,
    )
