"""Evaluators take placements and return measurements."""
