"""The MLflow server or database that a configuration names."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from spark_rank.config.schema import TrackingConfig
from spark_rank.errors import ConfigError
from spark_rank.redaction import redact
from spark_rank.visible import visible

# MLflow asks a server that is gone again for minutes, and prints addresses between our lines;
# what the environment says already stays
_SETTINGS = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "3",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}


def check_tracking(tracking: TrackingConfig) -> None:
    """Raise `ConfigError` unless MLflow is there, answers, and can take the experiment."""
    if tracking.mlflow is None:
        return
    try:
        with connected(tracking) as client:
            experiment = client.get_experiment_by_name(tracking.experiment)
    except ConfigError:
        raise
    except Exception as error:  # noqa: BLE001 - each kind of store raises what its library raises
        raise ConfigError(
            f"tracking.mlflow: {tracking.mlflow} cannot be used ({reason(error)}): give the URI of "
            "an MLflow server, or of a database, which needs sqlalchemy and alembic installed"
        ) from None
    if experiment is not None and experiment.lifecycle_stage == "deleted":
        raise ConfigError(
            f"tracking.experiment: {tracking.experiment!r} was deleted in MLflow: restore it "
            "there, or name another one"
        )


@contextmanager
def connected(tracking: TrackingConfig) -> Iterator[Any]:
    """Yield MLflow's client; meanwhile MLflow gives up soon, and tells errors alone."""
    with _environment(_SETTINGS):
        try:
            from mlflow import MlflowClient
        except ImportError:
            raise ConfigError(
                "tracking.mlflow: MLflow is not installed: `pip install mlflow-skinny`, for a "
                "database sqlalchemy and alembic too, or leave the key out"
            ) from None
        log = logging.getLogger("mlflow")
        level = log.level
        log.setLevel(logging.ERROR)
        try:
            yield MlflowClient(tracking_uri=tracking.mlflow, registry_uri=tracking.mlflow)
        finally:
            log.setLevel(level)


def reason(error: BaseException, length: int = 300) -> str:
    """Return an error's name and first line, without secrets."""
    said = redact(str(error)).strip().splitlines() or ["no message"]
    return visible(f"{type(error).__name__}: {said[0]}", length)


@contextmanager
def _environment(settings: Mapping[str, str]) -> Iterator[None]:
    added = {name: value for name, value in settings.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
