"""Whether any or all of a row of truth values are true.

Indexing asks this some twenty times of each file, mostly of a few hundred values: numpy's own
methods take a microsecond for each, however few there are, and a search in bytes next to nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def is_any(truths: NDArray[np.bool_]) -> bool:
    """``truths.any()``."""
    return 1 in truths.tobytes()


def are_all(truths: NDArray[np.bool_]) -> bool:
    """``truths.all()``."""
    return 0 not in truths.tobytes()
