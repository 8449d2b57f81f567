"""Reads a configuration file and overrides into a `Config`; errors name the key and the reason."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from spark_rank.config.checks import check_config
from spark_rank.config.fitting import with_fitting_defaults
from spark_rank.config.schema import Config
from spark_rank.config.values import SettingError, convert, holds_text
from spark_rank.config.yaml_document import LONGEST, parse_yaml
from spark_rank.errors import ConfigError
from spark_rank.redaction import remember, shown_setting
from spark_rank.visible import visible


def load_config(
    path: str | Path | None, sets: Sequence[str] = (), spark_settings: Sequence[str] = ()
) -> Config:
    """Return the effective configuration: defaults, then the file, then the command line.

    Without a file, the package's defaults hold.
    """
    tree = {} if path is None else _read_yaml(Path(path))
    config = _build(tree, str(path))
    overrides: dict[str, Any] = {}
    for assignment in sets:
        key, value = _split_assignment(assignment, "--set")
        _put(overrides, key, _override(key, value))
    if overrides:
        tree = _merge(tree, overrides)
        config = _build(tree, "--set")
    config = with_fitting_defaults(config, tree)
    for assignment in spark_settings:
        key, value = _split_assignment(assignment, "--spark")
        if not key.startswith("spark."):
            # the value is not repeated: it may be a secret
            raise ConfigError(f"--spark {key}: Spark settings start with 'spark.'")
        added = _convert(dict[str, str], {key: value}, "spark", "--spark")
        config = dataclasses.replace(config, spark={**config.spark, **added})
    remember(config.spark)
    check_config(config, _named_source(path, sets))
    return config


def _named_source(path: str | Path | None, sets: Sequence[str]) -> str:
    if path is None:
        return "--set"  # the defaults have no errors
    return f"{path} with --set" if sets else str(path)


def config_of(tree: Mapping[str, Any], source: str) -> Config:
    """Return the configuration from a tree of keys; errors name the `source` of the tree."""
    config = with_fitting_defaults(_build(tree, source), tree)
    check_config(config, source)
    return config


def to_yaml(config: Config) -> str:
    """Return the effective configuration as a YAML document; secrets are not shown."""
    return yaml.safe_dump(shown(config), sort_keys=False, allow_unicode=True)


def shown(config: Config) -> dict[str, Any]:
    """Return the effective configuration as a tree of keys; secrets are not shown."""
    tree = dataclasses.asdict(config)
    tree["spark"] = {name: shown_setting(name, value) for name, value in config.spark.items()}
    return tree


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        with path.open(encoding="utf-8") as stream:
            text = stream.read(LONGEST + 1)  # a device has no end
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such configuration file{_nearby(path)}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None
    tree = parse_yaml(text, str(path))
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise ConfigError(f"{path}: must hold 'key: value' lines, not a {type(tree).__name__}")
    return tree


def _override(key: str, value: str) -> Any:
    """Return the value of ``--set``: text for keys that hold text, YAML for the others."""
    if key.startswith("spark.") or (holds_text(Config, key) and value not in ("null", "~")):
        return value
    # no value means the empty text; each part of the key is one level above the value
    return parse_yaml(value or "''", f"--set {visible(key, 60)}", depth=key.count(".") + 1)


def _nearby(path: Path) -> str:
    folder = path.parent if path.parent.is_dir() else Path("conf")
    files = sorted(str(p) for p in folder.glob("*.yaml")) if folder.is_dir() else []
    close = difflib.get_close_matches(str(path), files, 1, 0.5)
    if close:
        return f" (did you mean {close[0]}?)"
    return f"; there are: {', '.join(files)}" if files else "; give one with --config FILE"


def _split_assignment(assignment: str, option: str) -> tuple[str, str]:
    key, equals, value = assignment.partition("=")
    if not equals or not key.strip():
        named = "" if option == "--spark" else f" {visible(assignment, 60)}"
        raise ConfigError(f"{option}{named}: write it as {option} key=value")
    return key.strip(), value


def _put(tree: dict[str, Any], dotted: str, value: Any) -> None:
    # names below `spark` contain dots; the second `spark.` may be left out
    first, _, below = dotted.partition(".")
    if first == "spark" and below:
        parents, last = ["spark"], below if below.startswith("spark.") else dotted
    else:
        *parents, last = dotted.split(".")
    for parent in parents:
        tree = tree.setdefault(parent, {})
        if not isinstance(tree, dict):
            named = visible(f"--set {dotted}: '{parent}'", 120)
            raise ConfigError(
                f"{named} is already set to a plain value, which cannot have keys below it"
            )
    tree[last] = value


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _merge(merged[key], value) if both else value
    return merged


def _build(tree: Mapping[str, Any], source: str) -> Config:
    config: Config = _convert(Config, tree, "", source)
    return config


def _convert(kind: Any, tree: Mapping[str, Any], key: str, source: str) -> Any:
    try:
        return convert(kind, tree, key)
    except SettingError as problem:
        raise ConfigError(f"{source}: {re.sub(r'^: ', '', str(problem))}") from None
