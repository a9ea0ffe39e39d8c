"""Tests of scotch."""
