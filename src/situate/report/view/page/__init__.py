"""Markup, style and script of the report."""
