"""The papers' searches in hours: `python -m benchmarks.papers.clocks.search_hours` and its
neighbours."""
