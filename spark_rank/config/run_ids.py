"""Valid run ids: none leads out of the store or looks like another one."""

from __future__ import annotations

import re

from spark_rank.errors import ConfigError

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def check_run_id(run_id: str, key: str = "run_id") -> str:
    """Return the run id, or raise `ConfigError` with the key that holds it."""
    if not _RUN_ID.fullmatch(run_id):
        raise ConfigError(
            f"{key}: {run_id[:120]!a} must be 1 to 100 letters, digits, '.', '_' or '-', "
            "starting with a letter or digit"
        )
    return run_id
