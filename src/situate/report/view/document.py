"""The report as one HTML file that needs nothing else.

Names from models never stand in the markup: they are in the data block, and the page puts them in
place as text. A Content-Security-Policy names the hashes of the one script and the one style sheet,
so that no other script runs and nothing is loaded.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from situate.errors import SituateError
from situate.files.atomic import write_bytes
from situate.report.view.bars import MAX_BARS
from situate.report.view.block import encoded
from situate.report.view.differences import differences
from situate.report.view.plan_report import PlanReport
from situate.version import VERSION

PAGE = "situate.report.view.page"
SCRIPTS = (
    "unpack",
    "format",
    "colors",
    "model",
    "viewport",
    "lanes",
    "overlay",
    "controls",
    "timeline",
    "details",
    "modules",
    "cluster",
    "tables",
    "search",
    "main",
)
"""The modules of the page's script, in the order in which they are joined."""
LIVE_SCRIPTS = ("format", "live")
"""Those of the page of running searches."""


def write(reports: Sequence[PlanReport], path: str | Path) -> None:
    """Write the page of one plan, or of several side by side.

    Raises:
        ScheduleError: a schedule never ends.
        SituateError: there is no plan, or `path` cannot be written.
    """
    write_bytes(path, page(reports))


def page(reports: Sequence[PlanReport], max_bars: int = MAX_BARS) -> bytes:
    """The page of one plan, or of several side by side; the first is compared with the others."""
    if not reports:
        raise SituateError("a report needs at least one plan")
    graphs: list[dict[str, object]] = []
    plans = []
    index: dict[str, int] = {}
    for report in reports:
        graph, plan = report.columns(max_bars)
        # Plans of one graph share its columns, unless bars stand for the ops of one plan.
        key = report.problem.graph.hash
        if key not in index or plan["bars"] < report.problem.n:
            index[key] = len(graphs)
            graphs.append(graph)
        plans.append(plan | {"graph": index[key]})
    content = {
        "version": VERSION,
        "graphs": graphs,
        "plans": plans,
        "differences": [differences(reports[0], other) for other in reports[1:]],
    }
    return _document(encoded(content))


def live_page() -> bytes:
    """The page of running searches, which asks its server for their state."""
    return _joined("live.html", _script(LIVE_SCRIPTS), "connect-src 'self'")


def _document(data: str) -> bytes:
    return _joined("report.html", _script(SCRIPTS), "img-src data:", data)


def _joined(markup: str, script: str, allowed: str, data: str = "") -> bytes:
    """Markup with its style, its script and its policy."""
    style = _text("style.css")
    values = {
        "policy": f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        f"{allowed}; base-uri 'none'; form-action 'none'",
        "style": style,
        "script": script,
        "data": data,
    }
    parts = _text(markup).split("%%")
    # Between two %% stands the name of a value.
    return "".join(values[part] if i % 2 else part for i, part in enumerate(parts)).encode()


def _script(names: Sequence[str]) -> str:
    """The modules of a script in one scope of their own."""
    modules = "\n".join(_text(f"{name}.js") for name in names)
    return f'"use strict";\n(() => {{\n{modules}\n}})();\n'


def _text(name: str) -> str:
    return files(PAGE).joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    """The source expression of a script or style sheet in a Content-Security-Policy."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{b64encode(digest).decode('ascii')}"
