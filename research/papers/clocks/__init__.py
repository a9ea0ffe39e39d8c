"""The papers' searches in hours: `python -m research.papers.clocks.search_hours` and its
neighbours."""
