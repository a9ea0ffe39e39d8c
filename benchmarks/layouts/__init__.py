"""Training layouts against published measurements of step time and memory."""
