"""Measuring decoders: which frames they return, and how fast."""

from reelseek.bench.probe import FileProbe, probe_file

__all__ = ["FileProbe", "probe_file"]
