"""Tests of situate; they mirror `src/situate` one to one."""
