"""Placements looked at: `python -m research.papers.placements.learned_placements`."""
