"""Reads YAML from hands that may not be friendly: plain values only, and only so much of it.

No tag makes an object, no key is given twice, and aliases, depth and numbers are bounded, so that
a few lines cannot fill the memory or keep the reader busy.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from spark_rank.errors import ConfigError

# characters of a document; the values in it, those that aliases repeat counted each time; levels
LONGEST = 262_144
_MAX_VALUES = 20_000
_MAX_DEPTH = 30
# what fits 64 bits, sign included
_MAX_WHOLE = 2**63

_TOO_MANY = (
    f"there are more than {_MAX_VALUES:,} values, those counted that aliases (*name) repeat: lists "
    "of ids go into files of their own (recommend.include_from)"
)

_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"
_WRITTEN_TAGS = (None, "!", f"{_TAG}str", f"{_TAG}map", f"{_TAG}seq")


class _StrictLoader(yaml.SafeLoader):
    """SafeLoader that refuses what plain YAML takes in silence or at any cost."""

    def __init__(self, text: str, source: str, depth: int) -> None:
        super().__init__(text)
        self.name = source
        self._depth = depth
        self._values = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()
        tag = getattr(event, "tag", None)
        if tag not in _WRITTEN_TAGS:
            # a tag makes an object of a value: a key takes none but text, numbers, true and false
            self._refuse(event.start_mark, f"the tag {tag[:60]!r} is not read: write plain values")
        if self._depth >= _MAX_DEPTH:
            self._refuse(event.start_mark, f"values are nested more than {_MAX_DEPTH} deep")
        self._values += 1
        if self._values > _MAX_VALUES:
            self._refuse(event.start_mark, _TOO_MANY)
        self._depth += 1
        try:
            node: yaml.Node | None = super().compose_node(parent, index)
            return node
        finally:
            self._depth -= 1

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag == _MERGE:
                continue
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, str) and key in seen:
                self._refuse(key_node.start_mark, f"key {key[:60]!r} is given twice: keep one")
            seen.add(key if isinstance(key, str) else repr(key))
        return super().construct_mapping(node, deep)

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        value = int(super().construct_yaml_int(node))
        if abs(value) >= _MAX_WHOLE:
            self._refuse(node.start_mark, "a whole number must fit 64 bits: write a smaller one")
        return value

    def _refuse(self, mark: yaml.Mark, problem: str) -> None:
        raise ConfigError(f"{self.name}:{mark.line + 1}: {problem}")


_StrictLoader.add_constructor(f"{_TAG}int", _StrictLoader.construct_yaml_int)
# YAML 1.1 reads 1e-4 (without a dot) as text; everybody who writes it means the number
_StrictLoader.add_implicit_resolver(
    f"{_TAG}float",
    re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+\Z"),
    list("-+0123456789"),
)


def parse_yaml(text: str, source: str, depth: int = 0) -> Any:
    """Return what a document says, or raise `ConfigError` that names `source` and the problem.

    A value that is not the whole document stands `depth` levels deep in it.
    """
    if len(text) > LONGEST:
        raise ConfigError(
            f"{source}: is longer than {LONGEST:,} characters: a configuration is not; lists "
            "of ids go into files of their own (recommend.include_from)"
        )
    try:
        return _construct(_StrictLoader(text, source, depth), source)
    except yaml.MarkedYAMLError as error:
        raise ConfigError(_said(error, source)) from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{source}: not valid YAML: {' '.join(str(error).split())}") from None


def _said(error: yaml.MarkedYAMLError, source: str) -> str:
    """Return what is wrong and where, without the line itself: a secret may stand in it."""
    mark = error.problem_mark or error.context_mark
    # a value of the command line is one line
    place = f"{source}:{mark.line + 1}" if mark and not source.startswith("--") else source
    words = ", ".join(str(part) for part in (error.context, error.problem) if part)
    return f"{place}: not valid YAML: {words}"


def _construct(loader: _StrictLoader, source: str) -> Any:
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if _repeated_values(node, {}, source) > _MAX_VALUES:
            raise ConfigError(f"{source}: {_TOO_MANY}")
        _keep_spark_settings_as_text(node)
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _repeated_values(node: yaml.Node, counted: dict[int, int | None], source: str) -> int:
    """Return the number of values below a node as if no alias were shared; refuse a circle."""
    known = counted.get(id(node), 0)
    if known is None:
        raise ConfigError(
            f"{source}:{node.start_mark.line + 1}: an alias (*name) stands inside of what it "
            "repeats: write it out"
        )
    if known:
        return known
    counted[id(node)] = None
    below: list[yaml.Node] = []
    if isinstance(node, yaml.SequenceNode):
        below = node.value
    elif isinstance(node, yaml.MappingNode):
        below = [part for pair in node.value for part in pair]
    total = 1 + sum(_repeated_values(part, counted, source) for part in below)
    counted[id(node)] = total
    return total


def _keep_spark_settings_as_text(node: yaml.Node) -> None:
    """Keep what stands below `spark:` as it is written: 1.10 is not 1.1, on is not true."""
    if not isinstance(node, yaml.MappingNode):
        return
    for key, value in node.value:
        if key.value == "spark" and isinstance(value, yaml.MappingNode):
            for _, setting in value.value:
                if isinstance(setting, yaml.ScalarNode) and not setting.tag.endswith(":null"):
                    setting.tag = f"{_TAG}str"
