"""Checks of the keys outside the stages' sections: store, run id, paths, Spark, earlier runs."""

from __future__ import annotations

import re

from spark_rank.config.run_ids import check_run_id
from spark_rank.config.schema import FACTOR_KINDS, Config, TrackingConfig
from spark_rank.config.sections import check_sections
from spark_rank.errors import ConfigError
from spark_rank.redaction import has_secret_query
from spark_rank.visible import visible

# user and password before the host: paths are shown in records and messages
_WITH_LOGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/@]*:[^/@]*@")
_GLOB_SIGNS = "*?[]{}"


def check_config(config: Config, source: str) -> None:
    """Raise `ConfigError`, with the name of the source, for values that break a rule."""
    try:
        check_run_id(config.run_id, "run_id")
        # first, because later messages repeat paths
        _check_paths(config)
        _check_store(config.store)
        _check_earlier_runs(config)
        _check_tracking(config.tracking)
        _check_spark(config)
        check_sections(config)
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None


def _check_store(store: str) -> None:
    if not store.strip():
        raise ConfigError("store: must not be empty: give a directory")
    if any(sign in store for sign in _GLOB_SIGNS):
        raise ConfigError(
            f"store: {visible(store, 60)!r} has one of the characters "
            f"{' '.join(_GLOB_SIGNS)}, which Spark reads as a pattern: use another directory"
        )


def _check_earlier_runs(config: Config) -> None:
    earlier = {"previous": config.previous, "features.kept_from": config.features.kept_from}
    for key, run_id in earlier.items():
        if run_id is not None:
            check_run_id(run_id, key)
        if run_id == config.run_id:
            raise ConfigError(
                f"{key}: a run cannot go on from itself: give the new run another run_id"
            )
    if config.features.kept_from is not None and config.features.kind not in FACTOR_KINDS:
        raise ConfigError(
            f"features.kept_from: keeps learned factors; leave it out with features.kind "
            f"{config.features.kind!r}"
        )


def _check_paths(config: Config) -> None:
    paths = {
        "store": config.store,
        "input.path": config.input.path,
        "input.test_path": config.input.test_path,
        "input.validation_path": config.input.validation_path,
        "input.titles": config.input.titles,
        "input.items": config.input.items,
        "input.dictionaries_from": config.input.dictionaries_from,
        "synthesize.path": config.synthesize.path,
        "features.given": config.features.given,
        "recommend.include_from": config.recommend.include_from,
        "recommend.exclude_from": config.recommend.exclude_from,
    }
    for key, path in paths.items():
        if path is not None and (_WITH_LOGIN.match(path) or has_secret_query(path)):
            raise ConfigError(
                f"{key}: contains a password or a signature: paths are shown and recorded, "
                "so give it as a setting of the file system below 'spark:'"
            )


def _check_tracking(tracking: TrackingConfig) -> None:
    uri = tracking.mlflow
    if uri is not None and (_WITH_LOGIN.match(uri) or has_secret_query(uri)):
        raise ConfigError(
            "tracking.mlflow: contains a password: addresses are shown and recorded, so set "
            "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or in the database's settings"
        )
    if uri is not None and not uri.strip():
        raise ConfigError("tracking.mlflow: must not be empty: give MLflow's tracking URI, or null")
    if not tracking.experiment.strip():
        raise ConfigError("tracking.experiment: must not be empty: give an experiment's name")


def _check_spark(config: Config) -> None:
    for name in config.spark:
        if not name.startswith("spark."):
            raise ConfigError(
                f"spark.{visible(name, 60)}: give Spark settings by their full names: "
                f"'spark.{visible(name, 60)}' below 'spark:'"
            )
