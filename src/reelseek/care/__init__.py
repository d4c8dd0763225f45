"""Care for whole datasets: checking, re-encoding, and jobs over thousands of files."""
