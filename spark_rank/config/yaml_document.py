"""Reads YAML that is not trusted: plain values only, of limited size.

Tags and repeated keys are refused. Aliases, depth and numbers are limited, so that a few lines
cannot fill the memory or take long to read.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from spark_rank.errors import ConfigError

# most characters, values (each alias counts the values it repeats) and levels of a document
LONGEST = 262_144
_MAX_VALUES = 20_000
_MAX_DEPTH = 30
# the first whole number that does not fit 64 bits, with its sign
_MAX_WHOLE = 2**63

_TOO_MANY = (
    f"there are more than {_MAX_VALUES:,} values, including those that aliases (*name) repeat: put "
    "long lists of ids into a file (recommend.include_from)"
)

_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"
_WRITTEN_TAGS = (None, "!", f"{_TAG}str", f"{_TAG}map", f"{_TAG}seq")


class _StrictLoader(yaml.SafeLoader):
    """A SafeLoader that refuses tags, repeated keys, and too many or too deep values."""

    def __init__(self, text: str, source: str, depth: int) -> None:
        super().__init__(text)
        self.name = source
        self._depth = depth
        self._values = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()
        tag = getattr(event, "tag", None)
        if tag not in _WRITTEN_TAGS:
            # a tag turns a value into an object; keys take text, numbers, true and false only
            self._refuse(
                event.start_mark, f"the tag {tag[:60]!r} is not allowed: write plain values"
            )
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
    """Return the values of a document, or raise `ConfigError` with `source` and the problem.

    `depth` is how many levels above the text there are: 0 for a whole document.
    """
    if len(text) > LONGEST:
        raise ConfigError(
            f"{source}: is longer than {LONGEST:,} characters: put long lists of ids into a file "
            "(recommend.include_from)"
        )
    try:
        return _construct(_StrictLoader(text, source, depth), source)
    except yaml.MarkedYAMLError as error:
        raise ConfigError(_in_words(error, source)) from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{source}: not valid YAML: {' '.join(str(error).split())}") from None


def _in_words(error: yaml.MarkedYAMLError, source: str) -> str:
    """Return the problem and its place, without the line itself: it may hold a secret."""
    mark = error.problem_mark or error.context_mark
    # a value on the command line has one line only
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
    """Return the number of values in a node, with aliases written out; refuse circular aliases."""
    count = counted.get(id(node), 0)
    if count is None:
        raise ConfigError(
            f"{source}:{node.start_mark.line + 1}: an alias (*name) is inside the value that it "
            "repeats: write the value out"
        )
    if count:
        return count
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
    """Keep the values below `spark:` as they are written: 1.10 is not 1.1, on is not true."""
    if not isinstance(node, yaml.MappingNode):
        return
    for key, value in node.value:
        if key.value == "spark" and isinstance(value, yaml.MappingNode):
            for _, setting in value.value:
                if isinstance(setting, yaml.ScalarNode) and not setting.tag.endswith(":null"):
                    setting.tag = f"{_TAG}str"
