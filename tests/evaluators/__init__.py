"""Tests of situate.evaluators."""
