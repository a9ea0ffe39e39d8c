"""Tests of hierarchical."""
