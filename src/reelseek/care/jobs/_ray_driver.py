"""The process that talks to Ray: calls that come one by one, and what is kept between them."""

from __future__ import annotations

import logging
import os
import secrets
from pathlib import Path
from typing import Any

from reelseek.care.jobs._task import run_part_on_ray

RETRIES = 2
"""How often Ray starts a task again whose process or node died; it goes on from its journal."""
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
"""Ray reports its use to nobody, and doesn't warn of what is to come."""

_refs: dict[str, Any] = {}
"""Ray's handles of the tasks, by name."""


def connect(address: str, variables: dict[str, str]) -> str:
    """Connect to a cluster, or start one ("local"); what is wrong, "missing" without ray.

    Args:
        address: As for ``ray.init``.
        variables: The tasks' environment.
    """
    is_own = address == "local"
    for name, value in {**QUIET, **(_own_token() if is_own else {})}.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError:
        return "missing"
    try:
        ray.init(
            address,
            logging_level=logging.ERROR,
            log_to_driver=False,
            runtime_env={"env_vars": variables},
            **({"include_dashboard": False} if is_own else {}),
        )
    except Exception as exc:  # noqa: BLE001 - Ray's errors have no common base here
        return str(exc).strip().splitlines()[0] if str(exc).strip() else type(exc).__name__
    return ""


def most_cpus() -> float:
    """CPUs of the cluster's largest node; 0 where no node has any yet, as before it grows."""
    import ray

    nodes = (node for node in ray.nodes() if node["Alive"])
    return max((node["Resources"].get("CPU", 0.0) for node in nodes), default=0.0)


def _own_token() -> dict[str, str]:
    """Variables that keep others off a cluster that is started here, with nothing left behind.

    Left to itself, Ray (2.60) writes a token into the user's home.
    """
    if "RAY_AUTH_MODE" in os.environ:
        return {}
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


def submit(job: str, cpus: int, paths: list[str]) -> None:
    """Start a task for each part's file; it is named as the file."""
    import ray

    function = ray.remote(num_cpus=cpus, max_retries=RETRIES, retry_exceptions=False)(
        run_part_on_ray
    )
    for path in paths:
        name = Path(path).stem
        _refs[name] = function.options(name=f"reelseek-{job}-{name}").remote(path)


def alive(names: list[str]) -> set[str]:
    """Those of the tasks that haven't ended."""
    import ray

    refs = {_refs[name]: name for name in names}
    _ended, waiting = ray.wait(list(refs), num_returns=len(refs), timeout=0)
    return {refs[ref] for ref in waiting}


def error_of(name: str) -> str:
    """Ray's word on a task that ended; empty where it ended well."""
    import ray

    try:
        ray.get(_refs[name])
    except ray.exceptions.RayError as exc:
        lines = str(exc).strip().splitlines()  # the last one of a traceback names the error
        return " ... ".join(dict.fromkeys([lines[0], lines[-1]]))
    return ""


def cancel() -> None:
    """End all tasks, with their processes."""
    import ray

    for ref in _refs.values():
        ray.cancel(ref, force=True)


def disconnect() -> None:
    """Leave the cluster; one that was started here ends."""
    import ray

    ray.shutdown()
