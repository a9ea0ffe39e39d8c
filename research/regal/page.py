"""Writes research/regal.md: text from `text/`, every number of ours from research/results.

A part without a record shows the command that measures it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.lib.record import ROOT, read_record
from research import RESULTS
from research.pages import write_page
from research.papers.claims import claim
from research.regal import tables
from research.regal.claims import claims
from research.regal.published import IN_PAPER_SETTINGS
from research.regal.tables import Content
from situate.solvers.evolutionary.regal.regal import WEIGHTS

PAGE = ROOT / "research" / "regal.md"
TEXT = Path(__file__).parent / "text"
WEIGHTS_LOST = "Weights not kept: its rows with weights cannot be repeated."
"""Said of records whose weights are lost."""

IMAGES = "images"
"""The folder of pictures beside the page."""


@dataclass(frozen=True)
class Part:
    """A part of the page, from one record.

    Attributes:
        title: its heading; empty for none.
        record: regal_RECORD.json.
        arguments: of the command in `research.regal` that writes it.
        table: its table, of the record's content.
        picture: of docs/images, which `research.regal.figures` draws; empty where there is none.
    """

    title: str
    record: str
    arguments: str
    table: Callable[[Content], str]
    picture: str = ""


TITLES = {
    "synthetic_time": "Synthetic set, time",
    "synthetic_time_paper": "Synthetic set, time, in the paper's settings",
    "real_time": "Real set, time",
    "real_time_paper": "Real set, time, in the paper's settings",
    "real_memory": "Real set, peak memory",
    "real_memory_paper": "Real set, peak memory, in the paper's settings",
    "real_time_by_synthetic": "Real set, time, by weights of the synthetic set",
    "synthetic_time_by_real": "Synthetic set, time, by weights of the real set",
    "real_time_constants": "Some of the real set, time, with constants",
    "real_memory_constants": "Some of the real set, peak memory, with constants",
    "published_time": "Published graphs, time",
    "larger_time": "Larger graphs, time",
    "larger_memory": "Larger graphs, peak memory",
}
FOLDERS = {
    "synthetic_time": "SYNTHETIC",
    "synthetic_time_paper": "SYNTHETIC",
    "real_time": "REAL/time",
    "real_time_paper": "REAL/time",
    "real_memory": "REAL/memory",
    "real_memory_paper": "REAL/memory",
    "real_time_by_synthetic": "REAL/time",
    "synthetic_time_by_real": "SYNTHETIC",
    "real_time_constants": "REAL/time",
    "real_memory_constants": "REAL/memory",
}
OURS = ("synthetic_time", "real_time", "real_memory")
"""The paper's three sets."""

OURS_IN_PAPER_SETTINGS = tuple(f"{name}{IN_PAPER_SETTINGS}" for name in OURS)

OF_CHOICES = (*OURS, *OURS_IN_PAPER_SETTINGS)
"""Records of the choices of weights."""


def _of_sets(
    command: str,
    table: Callable[[Content], str],
    sets: tuple[str, ...] = OURS,
    record: str = "",
    picture: str = "",
) -> tuple[Part, ...]:
    """A part for each of some sets."""
    return tuple(
        Part(
            TITLES[name],
            f"{record}{name}",
            command.format(set=FOLDERS.get(name, "LARGER"), name=name, objective=objective),
            table,
            f"{picture}_{name}" if picture else "",
        )
        for name in sets
        for objective in ["memory" if "memory" in name else "time"]
    )


EVALUATION = "evaluation {set}/test --name {name} --objective {objective} --weights tuned=WEIGHTS"
LARGER = "evaluation {set} --name {name} --objective {objective} --limits --weights tuned=WEIGHTS"
PUBLISHED = (
    "evaluation tests/instances/dnn-partitioning/throughput-inputs --name {name} --limits "
    "--weights real=WEIGHTS synthetic=WEIGHTS"
)
PAPER = EVALUATION.replace("tuned=WEIGHTS", "paper=WEIGHTS gas=WEIGHTS --exact 5")
ACTIONS = "actions {set}/test --name {name} --weights WEIGHTS"
AUTO = "auto {set}/test --name {name} --objective {objective} --weights WEIGHTS"
FOUR_UNEQUAL = "--cluster identical:4 --slowness 1 1 2 4 --bandwidth 1e6 --memory 0.4"
EIGHT_UNEQUAL = "--cluster identical:8 --slowness 1 1 1 1 2 2 4 4 --bandwidth 1e6 --memory 0.4"
TRAINED = "{set} --name {name} --objective {objective} --out FOLDER"


def _compared(table: Callable[[Content], str], picture: str = "") -> tuple[Part, ...]:
    """Two parts for each of the paper's sets, the second for weights in the paper's settings."""
    sets = _of_sets(EVALUATION, table, picture=picture)
    return *sets, *_of_sets(
        PAPER,
        lambda content: table(tables.in_paper_settings(content)),
        OURS_IN_PAPER_SETTINGS,
        picture=picture,
    )


CONSTANTS = tuple(
    Part(
        f"{title}, `{settings}` settings",
        f"constants_{settings}_{objective}",
        f"constants {sets} --settings {settings} --objective {objective}",
        tables.constants,
    )
    for settings in ("tuned", "paper")
    for objective, title, sets in (
        ("time", "Time", "SYNTHETIC/train"),
        ("memory", "Peak memory", "REAL/memory/train"),
    )
)

SECTIONS: dict[str, tuple[Part, ...]] = {
    "table_1": _compared(tables.methods),
    "trainings": (Part("", "trainings", "trainings", tables.trainings, "regal_trainings"),),
    "constants": (
        *CONSTANTS,
        *_of_sets(EVALUATION, tables.methods, ("real_time_constants",)),
        *_of_sets(
            EVALUATION.removesuffix(" --weights tuned=WEIGHTS"),
            tables.methods,
            ("real_memory_constants",),
        ),
    ),
    "linkages": tuple(
        Part(title, f"linkages_{name}", f"linkages {arguments} --name {name}", tables.linkages)
        for title, name, arguments in (
            ("Real set, time", "real_time", "REAL/time"),
            ("Real set, peak memory", "real_memory", "REAL/memory --objective memory"),
            (
                "Synthetic set, time, by weights of the real set",
                "synthetic_time",
                "SYNTHETIC --graphs 60",
            ),
            ("Larger graphs, time, four devices", "larger_four", "LARGER --devices 4"),
            ("Larger graphs, time, eight devices", "larger_eight", "LARGER --devices 8"),
        )
    ),
    "transfer": (
        *_of_sets(
            EVALUATION,
            tables.methods,
            ("real_time_by_synthetic", "synthetic_time_by_real"),
            picture="regal_improvements",
        ),
        *_of_sets(PUBLISHED, tables.methods, ("published_time",), picture="regal_improvements"),
        *_of_sets(
            LARGER, tables.methods, ("larger_time", "larger_memory"), picture="regal_improvements"
        ),
    ),
    "figure_2": _compared(tables.improvements, "regal_improvements"),
    "figure_3": _compared(tables.evaluations, "regal_evaluations"),
    "figure_4a": _of_sets(ACTIONS, tables.entropies, OF_CHOICES, "actions_", "regal_entropies"),
    "figure_4b": _of_sets(
        f"ablations rounds {TRAINED}",
        tables.variants,
        ("real_time",),
        "rounds_",
        "regal_rounds",
    ),
    "figure_11": _of_sets(ACTIONS, tables.choices, OF_CHOICES, "actions_"),
    "figure_12": _of_sets(
        "topologies {set}/test --name {name} --objective {objective} --weights WEIGHTS",
        tables.topologies,
        ("real_time", "real_memory"),
        "topologies_",
        "regal_topologies",
    ),
    "table_3": (Part("", "speed", "speed --weights WEIGHTS", tables.seconds),),
    "table_4": _of_sets(
        f"ablations proposals {TRAINED}",
        tables.variants,
        ("real_memory", "synthetic_time"),
        "proposals_",
    ),
    "auto": (
        *_of_sets(AUTO, tables.starts, record="auto_"),
        *(
            Part(
                f"Synthetic set, {what}",
                f"auto_{name}",
                f"auto SYNTHETIC/test --name {name} {option} --weights WEIGHTS",
                tables.starts,
            )
            for what, name, option in (
                ("transfers that take a microsecond a byte", "bandwidth", "--bandwidth 1e6"),
                ("devices of limited memory", "memory_limit", "--memory 0.7"),
                ("four devices", "four_devices", "--cluster identical:4"),
                ("four unequal devices of limited memory", "unequal_devices", FOUR_UNEQUAL),
                ("eight unequal devices of limited memory", "eight_devices", EIGHT_UNEQUAL),
            )
        ),
    ),
    "in_auto": (
        Part("Three ways", "in_auto_ways", "in_auto REAL", tables.in_auto),
        Part(
            "The start with the constant, on more problems",
            "in_auto_start",
            "in_auto REAL --name start --ways start --linkages constant",
            tables.in_auto,
        ),
    ),
}
"""By text, the parts below it."""


def main(arguments: list[str] | None = None) -> None:
    """Write the page."""
    write_page(str(__doc__), page, PAGE, arguments)


def page(results: Path = RESULTS) -> str:
    """The page from the JSON files of a folder."""
    return "\n".join(_blocks(results))


def _blocks(results: Path) -> Iterator[str]:
    yield (TEXT / "introduction.md").read_text()
    yield from _claims(results)
    for text, parts in SECTIONS.items():
        yield (TEXT / f"{text}.md").read_text()
        for part in parts:
            yield _part(part, results / f"regal_{part.record}.json")


def _claims(results: Path) -> Iterator[str]:
    """The table of claims, of the records that there are."""
    yield (TEXT / "claims.md").read_text()
    paths = {path.stem.removeprefix("regal_"): path for path in results.glob("regal_*.json")}
    rows = claims({name: read_record(path) for name, path in paths.items()})
    if not rows:
        yield "There is no record to test one with.\n"
        return
    yield f"Met: {claim.counted(rows)} that count.\n\n{claim.table(rows)}\n"


def _part(part: Part, path: Path) -> str:
    heading = f"### {part.title}\n" if part.title else ""
    if not path.is_file():
        return f"{heading}Not measured yet: `python -m research.regal.{part.arguments}`.\n"
    content = read_record(path)
    origin = f"`{path.name}`, commit {content['commit'][:7]}, {content['date'][:10]}."
    origin += f" {WEIGHTS_LOST}\n" if _lost(content) else "\n"
    picture = f"{IMAGES}/{part.picture}.svg"
    shown = part.picture and (PAGE.parent / picture).is_file()
    return f"{heading}{origin}\n{part.table(content)}\n" + (
        f"\n![{part.title or part.record}]({picture})\n" if shown else ""
    )


def _lost(content: Content) -> bool:
    """True for a record of weights that has no hash of theirs and does not name shipped ones."""
    tables, files = content["tables"], content["options"].get("weights") or {}
    of_files = tables.get("weights") or tables.get("trainings", [])
    hashed = [row.get("sha256") for row in of_files]
    if hashed and all(hashed):
        return False
    if not (files or hashed or {"curves", "entropy, nats"} & tables.keys()):
        return False
    names = set(files.values()) if isinstance(files, dict) else {files}
    return not names or not names <= {path.name for path in WEIGHTS.glob("*.safetensors")}


if __name__ == "__main__":
    main()
