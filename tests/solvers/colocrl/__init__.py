"""Tests of colocrl."""
