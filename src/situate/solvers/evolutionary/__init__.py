"""Evolutionary methods."""
