"""How long tests wait for what must happen."""

PATIENCE = 400
"""Seconds: a machine that is busy with other things doesn't fail them; less than pytest's limit."""
