"""Schedules: their arrays, their figures and their verification."""
