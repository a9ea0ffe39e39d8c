"""Tests of auto."""
