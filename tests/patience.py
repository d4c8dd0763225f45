"""How long tests wait for what must happen."""

PATIENCE = 250
"""Seconds: a machine that is busy with other things doesn't fail them; less than pytest's limit."""
