"""One page on a dataset: what it is, what is wrong with it, and what reading it costs."""

from reelseek.care.report._make import make_report, write_report
from reelseek.care.report._records import Report

__all__ = ["Report", "make_report", "write_report"]
