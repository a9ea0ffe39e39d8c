"""REGAL's experiments, in `research.regal`."""
