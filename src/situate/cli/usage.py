"""Usage lines of commands that take a plan, which may stand alone, without its model."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand


class TakesPlan(TyperCommand):
    """A command for a plan."""

    arguments = "[MODEL] PLAN"

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The options, and how the arguments go together."""
        return [self.options_metavar or "", self.arguments]


class TakesModelOrPlan(TakesPlan):
    """A command for a plan, or for a model that it plans first."""

    arguments = "MODEL [PLAN] | PLAN"
