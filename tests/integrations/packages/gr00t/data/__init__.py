"""Stands for the real package, which is on no index; see the modules."""
