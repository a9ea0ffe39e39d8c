"""The command that writes a page from records."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from research import RESULTS


def write_page(
    description: str, page: Callable[[Path], str], path: Path, arguments: list[str] | None
) -> None:
    """Parse the options of a page's command and write the page.

    Args:
        description: of the command, for `--help`.
        page: returns the page from the folder of records.
        path: of the page, unless `--out` names another.
        arguments: of the command line; None for the process's own.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=path, metavar="FILE")
    options = parser.parse_args(arguments)
    options.out.write_text(page(options.results))
