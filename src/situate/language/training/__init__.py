"""Training runs of language models on clusters: the time and the memory of a step, by formulas."""
