"""The research record: the papers' and REGAL's experiments, their records, pictures and pages."""

from __future__ import annotations

from benchmarks.lib.record import ROOT

FOLDER = ROOT / "research"
RESULTS = FOLDER / "results"
IMAGES = FOLDER / "images"
TRAININGS = FOLDER / "weights"
