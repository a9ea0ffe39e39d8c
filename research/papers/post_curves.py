"""Fig. 2 of Post: learning curves of the four softmax methods, from the record of post_table."""

from __future__ import annotations

import argparse
from pathlib import Path

from research import IMAGES, RESULTS
from research.papers import curves, published
from research.papers.checks import SOFTMAX
from research.papers.tables import Results


def main(arguments: list[str] | None = None) -> None:
    """Draw research/images/post_curves_SETTINGS.svg."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER")
    parser.add_argument("--images", type=Path, default=IMAGES, metavar="FOLDER")
    options = parser.parse_args(arguments)
    results = Results.read(options.results / "post_table.json")
    titles = {f"{n}/{g}": f"{published.TITLES[n]}, {g} GPUs" for n, g in published.CURVES}
    for settings in ("paper", "tuned"):
        columns = [
            (case, settings, title)
            for case, title in titles.items()
            if results.of(case, "post", settings)
        ]
        if columns:
            path = options.images / f"post_curves_{settings}.svg"
            curves.draw(path, results, columns, SOFTMAX)
            print(path)


if __name__ == "__main__":
    main()
