"""The papers' experiments, in `research.papers`."""
