"""Policies: distributions over placements, their samples and their gradients."""
