"""Care for whole datasets: checking, re-encoding, jobs over thousands of files, and reports."""
