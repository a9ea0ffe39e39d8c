"""Exports of plans of parts."""
