"""Reads a configuration file and overrides into a `Config`, or says which key is wrong and why."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from spark_rank.config.checks import check_config
from spark_rank.config.schema import Config
from spark_rank.config.values import SettingError, convert, holds_text
from spark_rank.errors import ConfigError


class _StrictLoader(yaml.SafeLoader):
    """SafeLoader that refuses a key given twice, which plain YAML silently overwrites."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, str) and key in seen:
                raise ConfigError(
                    f"{self.name}:{key_node.start_mark.line + 1}: key {key!r} is given twice: "
                    "keep one"
                )
            seen.add(key if isinstance(key, str) else repr(key))
        return super().construct_mapping(node, deep)


# YAML 1.1 reads 1e-4 (without a dot) as text; everybody who writes it means the number
_StrictLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+"),
    list("-+0123456789"),
)


def load_config(
    path: str | Path, sets: Sequence[str] = (), spark_settings: Sequence[str] = ()
) -> Config:
    """Return the effective configuration: defaults, then the file, then the command line."""
    tree = _read_yaml(Path(path))
    config = _build(tree, str(path))
    overrides: dict[str, Any] = {}
    for assignment in sets:
        key, value = _split_assignment(assignment, "--set")
        _put(overrides, key, _override(key, value))
    if overrides:
        config = _build(_merge(tree, overrides), "--set")
    for assignment in spark_settings:
        key, value = _split_assignment(assignment, "--spark")
        if not key.startswith("spark."):
            raise ConfigError(f"--spark {assignment}: Spark settings start with 'spark.'")
        config = dataclasses.replace(config, spark={**config.spark, key: value})
    check_config(config, f"{path} with --set" if sets else str(path))
    return config


def to_yaml(config: Any) -> str:
    """Return the effective configuration as a YAML document."""
    return yaml.safe_dump(dataclasses.asdict(config), sort_keys=False, allow_unicode=True)


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such configuration file{_nearby(path)}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None
    tree = _parse(text, str(path))
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise ConfigError(f"{path}: must hold 'key: value' lines, not a {type(tree).__name__}")
    return tree


def _parse(text: str, source: str) -> Any:
    loader = _StrictLoader(text)
    loader.name = source
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _keep_spark_settings_as_text(node)
        return loader.construct_document(node)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{source}: not valid YAML: {_one_line(error)}") from None
    finally:
        loader.dispose()


def _keep_spark_settings_as_text(node: yaml.Node) -> None:
    """Keep what stands below `spark:` as it is written: 1.10 is not 1.1, on is not true."""
    if not isinstance(node, yaml.MappingNode):
        return
    for key, value in node.value:
        if key.value == "spark" and isinstance(value, yaml.MappingNode):
            for _, setting in value.value:
                if isinstance(setting, yaml.ScalarNode) and not setting.tag.endswith(":null"):
                    setting.tag = "tag:yaml.org,2002:str"


def _override(key: str, value: str) -> Any:
    """Return the value of ``--set``: text for keys that hold text, YAML for the others."""
    if key.startswith("spark.") or (holds_text(Config, key) and value not in ("null", "~")):
        return value
    return _parse(value, f"--set {key}") if value else ""


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _nearby(path: Path) -> str:
    folder = path.parent if path.parent.is_dir() else Path("conf")
    found = sorted(str(p) for p in folder.glob("*.yaml")) if folder.is_dir() else []
    close = difflib.get_close_matches(str(path), found, 1, 0.5)
    if close:
        return f" (did you mean {close[0]}?)"
    return f"; there are: {', '.join(found)}" if found else "; give one with --config FILE"


def _split_assignment(assignment: str, option: str) -> tuple[str, str]:
    key, equals, value = assignment.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"{option} {assignment}: write it as {option} key=value")
    return key.strip(), value


def _put(tree: dict[str, Any], dotted: str, value: Any) -> None:
    # settings below `spark` have dots in their own names; the doubled first word may be left out
    first, _, rest = dotted.partition(".")
    if first == "spark" and rest:
        tree.setdefault("spark", {})[rest if rest.startswith("spark.") else dotted] = value
        return
    *parents, last = dotted.split(".")
    for parent in parents:
        tree = tree.setdefault(parent, {})
        if not isinstance(tree, dict):
            raise ConfigError(f"--set {dotted}: '{parent}' was already set to a plain value")
    tree[last] = value


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _merge(merged[key], value) if both else value
    return merged


def _build(tree: Mapping[str, Any], source: str) -> Config:
    try:
        return convert(Config, tree, "")
    except SettingError as problem:
        raise ConfigError(f"{source}: {re.sub(r'^: ', '', str(problem))}") from None
