"""Fuzzing the parsers: what to feed them, and what they may raise."""
