"""One item's call, in a worker process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reelseek.care.jobs._journal import Begun, Entry, append
from reelseek.errors import ReelseekError
from reelseek.workers._child import function_of

DO_ITEM = f"{__name__}:do_item"
"""``do_item``, for a worker process."""


def do_item(
    function: str, arguments: Mapping[str, Any], key: str, stamp: str, run: str, journal: str
) -> Entry:
    """Call a job's function for one item.

    A ReelseekError is an answer; after any other error a further attempt may do better.

    Args:
        function: "module:name".
        arguments: What it is called with, beside the key.
        key: The item's key.
        stamp: Its input's fingerprint.
        run: The run's name.
        journal: Where to write that it was begun; empty where nobody asks.
    """
    try:
        if journal:
            append(Path(journal), Begun(key, Path(journal).stem))
        value = function_of(function)(key, **arguments)
        json.dumps(value)
    except ReelseekError as exc:
        return Entry(key, stamp, run, None, str(exc))
    except Exception as exc:  # noqa: BLE001 - one item's fault, whatever it is, stops no other
        text = f"{key}: {type(exc).__name__}: {exc}"
        return Entry(key, stamp, run, None, text, is_final=False)
    return Entry(key, stamp, run, value, "")
