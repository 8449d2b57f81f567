"""Sees that a run lies in its store, whatever links there are on a local disk."""

from __future__ import annotations

import os
import re

from spark_rank.errors import ConfigError


def check_contained(root: str, runs: str) -> None:
    """Raise `ConfigError` if the run directory `root` is a link that leads out of `runs`.

    Both are qualified paths. Only local disks have links; the store itself may be one.
    """
    if not root.startswith("file:"):
        return
    inside, outside = _resolved(runs), _resolved(root)
    if os.path.commonpath([inside, outside]) != inside:
        raise ConfigError(
            f"{root} is a link that leads out of the store, to {outside}: remove it, or name that "
            "store"
        )


def _resolved(path: str) -> str:
    return os.path.realpath(re.sub("^file:(//)?", "", path))
