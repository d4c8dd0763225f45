"""``python -m reelseek``: the command of the environment whose Python this is."""

from reelseek.cli import main

main()
