"""Looking after whole datasets: finding what is wrong, re-encoding, and reports to look at."""
