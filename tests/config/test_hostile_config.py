"""A configuration from unfriendly hands: one line and exit code 2, at once, whatever it holds."""

from __future__ import annotations

import dataclasses
import resource
import string
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
import yaml
from hypothesis import strategies as st

from spark_rank import redaction
from spark_rank.config import Config, load_config, to_yaml
from spark_rank.config.describing import describe
from spark_rank.errors import ConfigError

SECRET = "hunter2+Zk9/secret-value"


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    """No test of this module may take more than two gigabytes beyond what is mapped already."""
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (mapped + 2**31, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test's secrets be remembered by the next."""
    monkeypatch.setattr(redaction, "_remembered", set())


def load(folder: Path, text: str | bytes, *sets: str, spark: tuple[str, ...] = ()) -> Config:
    path = folder / "some.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_config(path, sets, spark)


def assert_refused(folder: Path, text: str | bytes, *sets: str, spark: tuple[str, ...] = ()) -> str:
    with pytest.raises(ConfigError) as caught:
        load(folder, text, *sets, spark=spark)
    message = str(caught.value)
    assert caught.value.exit_code == 2
    assert message.isprintable(), message
    assert len(message) < 1000
    return message


def laughs(first: str, again: str) -> str:
    """Return a document whose every line repeats the one before ten times: a billion values."""
    lines = [f"a: &a {first}"]
    for name, before in zip("bcdefghij", "abcdefghi", strict=True):
        lines.append(f"{name}: &{name} {again.format(', '.join([f'*{before}'] * 10))}")
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (laughs("[x]", "[{}]"), "more than 20,000 values"),
        (laughs("{x: 1}", "{{<<: [{}]}}"), "more than 20,000 values"),
        ("input: {levels: [" + "1," * 30_000 + "]}", "more than 20,000 values"),
        ("input: {path: " + "x" * 300_000 + "}", "longer than 262,144 characters"),
        ("a: " + "[" * 20_000, "nested more than 30 deep"),
        ("{a: " * 1000 + "1" + "}" * 1000, "nested more than 30 deep"),
        ("- " * 10_000, "nested more than 30 deep"),
        ("train: &t {learners: [*t]}", "is inside the value that it repeats"),
        ("train: {learners: [{params: &p {C: *p}}]}", "is inside the value that it repeats"),
        ("seed: !!python/object/apply:os.system ['true']", "is not allowed: write plain values"),
        ("seed: !!python/name:os.system", "is not allowed"),
        ("seed: !!int ''", "is not allowed"),
        ("seed: !!timestamp x", "is not allowed"),
        ("seed: !own 1", "is not allowed"),
        ("seed: 0x" + "f" * 20_000, "fit 64 bits"),
        ("seed: 0b" + "1" * 100_000, "fit 64 bits"),
        ("train: {min_ratings: 1" + ":1" * 3000 + "}", "fit 64 bits"),
        ("train: {learners: [{params: {C: 9223372036854775808}}]}", "fit 64 bits"),
        ("train: {learners: [{grid: {C: [" + "x" * 5000 + "]}}]}", "give a number above 0"),
        ("x" * 1000 + ": 1", "unknown key"),
        ("input: {" + "y" * 1000 + ": 1}", "unknown key"),
        ("input: {columns: {" + "y" * 1000 + ": a}}", "unknown key"),
        ("input: {delimiter: " + "y" * 1000 + "}", "a single character"),
        ("rank: {learners: [" + "y" * 1000 + "]}", "no learner is called"),
        ("recommend: {learner: " + "y" * 1000 + "}", "no learner is called"),
        ("train: {learners: [{name: a, learner: " + "y" * 1000 + "}]}", "unknown learner"),
        ("train: {learners: [{params: {" + "y" * 1000 + ": 1}}]}", "unknown key"),
        ("spark: {" + "y" * 1000 + ": 1}", "full names"),
        ("store: '" + "y" * 1000 + "*'", "pattern"),
        ("seed: {a: [{b: [" + "c," * 5000 + "]}]}", "must be a whole number"),
        ('store: "a\\0b"', "control character"),
        ('store: "\\ud800"', "control character"),
        ('input: {path: "a\\nb"}', "control character"),
        ('input: {columns: {user: "\\e[2J"}}', "control character"),
        ('train: {learners: [{name: "\\u202etxt.exe"}]}', "control character"),
        ('recommend: {include: ["\\u2066"]}', "control character"),
        ("train: {learners: [{name: '" + "n" * 61 + "'}]}", "1 to 60 characters"),
        ("train: {learners: [{name: ' '}]}", "1 to 60 characters"),
        ("store: a\0b", "not valid YAML"),
        (b"store: \xff", "cannot be read"),
        ("? {a: 1}\n: 1", "not valid YAML"),
        ("seed: 2024-99-99", "not valid YAML"),
        ("run_id: 1e5f!", "run_id"),
        ("=: 1", "not valid YAML"),
        ("<<: [1]", "not valid YAML"),
    ],
)  # fmt: skip
def test_what_is_hostile_is_one_clear_line(tmp_path: Path, text: str | bytes, words: str) -> None:
    assert words in assert_refused(tmp_path, text)


@pytest.mark.parametrize(
    "run_id",
    ["", ".", "..", "../x", "a/b", "a\\b", "/etc", "~", "-rf", "a b", "a*", "a\n", "a%2f..", "é",
     "a\u0430", "\uff0e\uff0e", "a\u200b", "a\u202e", "file:x", "x" * 101, "{a}", "$HOME"],
)  # fmt: skip
def test_a_run_id_is_a_name_and_no_path(tmp_path: Path, run_id: str) -> None:
    assert "run_id" in assert_refused(tmp_path, yaml.safe_dump({"run_id": run_id}))
    assert "run_id" in assert_refused(tmp_path, "", f"run_id={run_id}")


@pytest.mark.parametrize(
    "sets",
    [
        ("train." + "x." * 50_000 + "y=1",),
        ("experiment.settings" + ".a" * 5000 + "=1",),
        ("experiment.settings" + ".a" * 5000 + "=",),
        ("experiment.settings" + ".a" * 20 + "=" + "[" * 10 + "]" * 10,),
        ("input.columns=" + "[" * 5000,),
        ("input.columns=" + laughs("[x]", "[{}]"),),
        ("spark=5", "spark.spark.a=1"),
        ("seed=!!python/name:os.system",),
        ("input.path=a\udcffb",),
        ("a=1" * 5000,),
        ("\x1b[2J",),
    ],
)
def test_the_command_line_is_read_as_carefully(tmp_path: Path, sets: tuple[str, ...]) -> None:
    assert_refused(tmp_path, "", *sets)


def test_a_device_is_no_configuration() -> None:
    with pytest.raises(ConfigError, match="longer than|not valid YAML"):
        load_config("/dev/zero")


@pytest.mark.parametrize(
    ("text", "spark"),
    [
        ("", (f"fs.s3a.secret.key={SECRET}",)),
        ("", (f"spark.hadoop.fs.s3a.secret.key:{SECRET}",)),
        ("", (f"spark.hadoop.fs.s3a.secret.key={SECRET}\x07",)),
        (f"spark: {{spark.hadoop.fs.s3a.secret.key: [{SECRET}]}}", ()),
        (f"spark:\n  spark.hadoop.fs.s3a.secret.key: {SECRET}: x", ()),
        (f"spark:\n  spark.hadoop.fs.s3a.secret.key: '{SECRET}\n", ()),
        (f"store: s3a://AKIAXYZ:{SECRET.replace('/', '')}@bucket/runs", ()),
    ],
)
def test_no_message_repeats_a_secret(tmp_path: Path, text: str, spark: tuple[str, ...]) -> None:
    message = assert_refused(tmp_path, text, spark=spark)
    assert SECRET not in message
    assert SECRET.replace("/", "") not in message


def test_what_is_shown_of_the_settings_holds_no_secret(tmp_path: Path) -> None:
    text = f"spark: {{spark.hadoop.fs.s3a.secret.key: '{SECRET}', spark.a: plain}}\n"
    options = f"spark.driver.extraJavaOptions=-Dssl.trustStorePassword={SECRET} -Dx=y"
    config = load(tmp_path, text, spark=("spark.b.token=abcd1234", options))
    assert config.spark["spark.hadoop.fs.s3a.secret.key"] == SECRET
    shown = to_yaml(config)
    assert SECRET not in shown
    assert "abcd1234" not in shown
    assert yaml.safe_load(shown)["spark"]["spark.a"] == "plain"
    # and what an exception says of it is not repeated either
    said = redaction.redact(f"login {SECRET} with abcd1234 failed, -Dx=y")
    assert said == f"login {redaction.REDACTED} with {redaction.REDACTED} failed, -Dx=y"


@pytest.mark.parametrize(
    "name",
    [
        "spark.hadoop.fs.s3a.encryption.key",
        "spark.hadoop.fs.s3a.server-side-encryption.key",
        "spark.hadoop.fs.s3a.bucket.nightly.encryption.key",
        "spark.hadoop.fs.gs.encryption.key",
        "spark.hadoop.fs.azure.sas.container.account",
        "spark.hadoop.fs.azure.sas.container.account.blob.core.windows.net",
        "spark.hadoop.fs.azure.account.key.account.dfs.core.windows.net",
        "spark.my-key",
    ],
)
def test_keys_that_encrypt_and_sign_are_secrets(tmp_path: Path, name: str) -> None:
    """Inside of longer settings too, such as the command line that an event log holds."""
    options = f"spark.driver.extraJavaOptions=-D{name}={SECRET}"
    for setting in (f"{name}={SECRET}", options):
        assert SECRET not in to_yaml(load(tmp_path, "", spark=(setting,)))
        assert SECRET not in redaction.redact(f"login {SECRET} failed")
        redaction._remembered.clear()


def test_settings_that_only_speak_of_keys_are_shown(tmp_path: Path) -> None:
    given = {"spark.io.encryption.keySizeBits": "256", "spark.ssl.keyStore": "/etc/store.jks",
             "spark.kubernetes.driver.label.keyboard": "qwerty",
             "spark.hadoop.fs.sassy.name": "some"}  # fmt: skip
    config = load(tmp_path, "", spark=tuple(f"{name}={value}" for name, value in given.items()))
    assert yaml.safe_load(to_yaml(config))["spark"] == given


@pytest.mark.parametrize(
    "query",
    ["sv=2024&sig=%s", "password=%s", "x=1&X-Amz-Signature=%s&y=2", "X-Goog-Signature=%s",
     "access_token=%s", "%%73ig=%s", "api_key=%s"],
)  # fmt: skip
@pytest.mark.parametrize("key", ["input.path", "input.titles", "features.given", "store"])
def test_a_link_with_a_signature_is_refused_and_not_repeated(
    tmp_path: Path, key: str, query: str
) -> None:
    link = "https://host/ratings.csv?" + query % "abcd1234"
    message = assert_refused(tmp_path, "", f"{key}={link}")
    assert "abcd1234" not in message


@pytest.mark.parametrize(
    "path", ["s3a://bucket/part-?.csv", "s3a://bucket/ye?r=2024/day=1", "/data/part-?/token=1"]
)
def test_signs_of_a_glob_are_no_query(tmp_path: Path, path: str) -> None:
    assert load(tmp_path, "", f"input.path={path}").input.path == path


def test_words_that_are_no_secrets_stay_as_they_are() -> None:
    redaction.remember({"spark.ssl.token.enabled": "true", "spark.token": "abc", "spark.a": "word"})
    assert redaction.redact("true abc word") == "true abc word"


SECTIONS = [field.name for field in dataclasses.fields(Config)]
KEYS = [key.name for key in describe(Config, ["", *SECTIONS])]
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20),
    st.dates(), st.binary(max_size=5),
)  # fmt: skip
TREES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.sampled_from(KEYS), SCALARS), inner, max_size=3),
    ),
    max_leaves=10,
)
YAML_BITS = st.sampled_from(
    [*"[]{}:,&*!|>'\"%@`#-?\n\t \\0", "a", "&a ", "*a", "<<: ", "!!", "seed: ", "spark:\n  ",
     "train: {learners: [", "\u2028", "\x85", "\ufeff", "---\n", "...", "0x", "1e", "~", "=",
     "2024-01-01", "run_id: "],
)  # fmt: skip


def assert_taken_or_refused(folder: Path, text: str | bytes, *sets: str) -> None:
    """Load: either it is a configuration that can be shown and read back, or one clear line."""
    path = folder / "fuzz.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    try:
        config = load_config(path, sets)
    except ConfigError as error:
        problem = str(error)
    else:
        problem = ""
    assert "\n" not in problem
    if problem:
        return
    again = folder / "again.yaml"
    again.write_text(to_yaml(config), encoding="utf-8")
    assert load_config(again) == config


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@hypothesis.given(st.lists(YAML_BITS, max_size=30).map("".join))
def test_fuzzed_text_is_a_configuration_or_one_line(folder: Path, text: str) -> None:
    assert_taken_or_refused(folder, text)


@hypothesis.given(st.binary(max_size=60))
def test_fuzzed_bytes_are_a_configuration_or_one_line(folder: Path, content: bytes) -> None:
    assert_taken_or_refused(folder, content)


@hypothesis.given(st.sampled_from(KEYS), TREES)
def test_any_value_of_any_key_is_taken_or_refused(folder: Path, key: str, value: object) -> None:
    tree: object = value
    for part in reversed(key.split(".")):
        tree = {part: tree}
    assert_taken_or_refused(folder, yaml.dump(tree, allow_unicode=True))


@hypothesis.given(
    st.sampled_from([*KEYS, "spark.a", "spark", "input.columns.user", "train.learners"]),
    st.text(alphabet=string.printable + "\x00\x1b\u202e\udcff", max_size=30),
)
def test_any_override_is_taken_or_refused(folder: Path, key: str, value: str) -> None:
    assert_taken_or_refused(folder, "", f"{key}={value}")
