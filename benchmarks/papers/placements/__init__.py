"""Placements looked at: `python -m benchmarks.papers.placements.learned_placements`."""
