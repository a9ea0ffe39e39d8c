"""Policies: distributions over placements, how they are sampled and how their gradients go."""
