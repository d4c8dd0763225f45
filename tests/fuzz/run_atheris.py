"""Fuzz one parser with atheris: ``python -m tests.fuzz.run_atheris TARGET [libFuzzer options]``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path


def main() -> None:
    """Run until the options say to stop, or something falls out."""
    import atheris

    with atheris.instrument_imports(include=["reelseek"]):
        from tests.fuzz.seeds import seeds_of
        from tests.fuzz.targets import TARGETS

    name, *options = sys.argv[1:]
    folder = Path(tempfile.mkdtemp())
    for number, seed in enumerate(seeds_of(name)):
        (folder / str(number)).write_bytes(seed)
    atheris.Setup([sys.argv[0], str(folder), *options], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
