"""The configuration is strict: one clear line that names key, file and remedy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from spark_rank.config import Config, load_config, to_yaml
from spark_rank.config.describing import describe
from spark_rank.config.schema import FormatName
from spark_rank.errors import ConfigError

DEFAULT = Path(__file__).parents[2] / "conf" / "default.yaml"
KERNEL = DEFAULT.with_name("kernel.yaml")


def load(tmp_path: Path, text: str, *sets: str, spark: tuple[str, ...] = ()) -> Config:
    path = tmp_path / "some.yaml"
    path.write_text(text)
    return load_config(path, sets, spark)


def test_defaults_file_and_command_line_in_that_order(tmp_path: Path) -> None:
    config = load(tmp_path, "seed: 3\ninput: {format: csv}\n", "seed=4", "train.min_ratings=5")
    assert (config.seed, config.input.format, config.train.min_ratings) == (4, "csv", 5)
    assert config.prepare.train_share == 0.5


def test_an_empty_file_is_all_defaults(tmp_path: Path) -> None:
    assert load(tmp_path, "# nothing\n") == Config()


def test_the_shipped_default_is_valid_and_pins_its_keys() -> None:
    config = load_config(DEFAULT)
    tree = yaml.safe_load(DEFAULT.read_text())
    assert {"store", "run_id", "seed", "input", "spark"} <= tree.keys()
    assert {"path", "format"} <= tree["input"].keys()
    assert config.input.path is None


def test_the_kernel_is_one_learner_more_than_the_default() -> None:
    default, kernel = load_config(DEFAULT), load_config(KERNEL)
    more = kernel.train.learners[len(default.train.learners) :]
    assert [entry.params["kernel"] for entry in more] == ["linear+rbf"]
    learners = [*default.train.learners, *more]
    same = replace(default, run_id="kernel", train=replace(default.train, learners=learners))
    assert kernel == same


def test_the_accurate_file_has_more_factors_and_the_kernel_alone() -> None:
    default, kernel, accurate = (load_config(DEFAULT.with_name(f"{name}.yaml"))
                                 for name in ("default", "kernel", "accurate"))  # fmt: skip
    learner = accurate.train.learners[0]
    assert (learner.name, learner.params["kernel"]) == ("mprank", "linear+rbf")
    same = replace(
        default, run_id="accurate", features=replace(kernel.features, rank=64),
        train=replace(default.train, learners=[learner]),
    )  # fmt: skip
    assert accurate == same


def test_show_reads_back_to_the_same(tmp_path: Path) -> None:
    config = load_config(DEFAULT, ["run_id=x", "input.columns={user: u}"], ["spark.a.b=1"])
    assert load(tmp_path, to_yaml(config)) == config


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sede: 1", ["some.yaml", "unknown key 'sede'", "did you mean 'seed'?"]),
        ("input: {formt: csv}", ["input.formt", "did you mean 'input.format'?"]),
        ("input: {format: cvs}", ["input.format", "'cvs'", "did you mean 'csv'?"]),
        ("seed: one", ["seed", "must be a whole number", "'one'"]),
        ("seed: true", ["seed", "must be a whole number"]),
        ("seed: -1", ["seed", "at least 0"]),
        ("prepare: {train_share: 0}", ["prepare.train_share", "above 0"]),
        ("prepare: {train_share: .nan}", ["prepare.train_share", "finite"]),
        ("prepare: 3", ["prepare", "a section with keys"]),
        ("store: null", ["store", "must be text"]),
        ("store: ' '", ["store", "must not be empty"]),
        ("run_id: a/../../b", ["run_id", "letters"]),
        ("train: {learners: []}", ["train.learners", "at least one"]),
        ("train: {learners: [{learner: mprnk}]}", ["train.learners[0]", "'mprank'?"]),
        ("train: {learners: [{learner: oap}]}", ["'oap'", "takes mprank, multiclass_perceptron"]),
        ("train: {learners: [{params: {kernel: precomputed}}]}", ["'precomputed'", "arrays"]),
        ("train: {learners: [{params: {c: 1}}]}", ["params.c", "did you mean 'C'?"]),
        ("train: {learners: [{params: {C: 0}}]}", ["params.C=0", "a number above 0"]),
        ("train: {learners: [{name: constant}]}", ["'constant' is taken"]),
        ("train: {learners: [{}, {}]}", ["learners[1].name", "'mprank' is taken"]),
        ("input: {columns: {usr: a}}", ["input.columns.usr", "did you mean 'user'?"]),
        ("input: {rating_min: 5, rating_max: 1}", ["input.rating_min", "below"]),
        ("spark: {shuffle: 4}", ["spark.shuffle", "full names"]),
        ("seed: 1\nseed: 2", [":2", "'seed' is given twice"]),
        ("input: {rating_max: 1e400}", ["input.rating_max", "finite"]),
        ("train: {learners: [{params: {C: 1e400}}]}", ["params.C=", "above 0"]),
        ("train: {min_ratings: 2147483648}", ["train.min_ratings", "at most 2,147,483,647"]),
        ("evaluate: {activity: [2147483648]}", ["evaluate.activity[0]", "at most"]),
        ("train: {learners: [{params: {kernel: rbf, solver: primal}}]}", ["use 'dual'"]),
        ("input: {delimiter: ab}", ["input.delimiter", "a single character"]),
        ("input: {path: ''}", ["input.path", "must not be empty"]),
        ("input: {columns: {user: null}}", ["input.columns.user", "cannot be left out"]),
        ("synthesize: {users: 1000000000000}", ["synthesize.users", "at most"]),
        ("store: a[b", ["store", "pattern"]),
        ("run_id: 0010", ["run_id", "put it in quotes"]),
        ("train: {learners: [{grid: {c: [1]}}]}", ["'grid.c'", "did you mean 'C'?"]),
        ("train: {learners: [{grid: {C: 1}}]}", ["grid.C", "must be a list"]),
        ("train: {learners: [{grid: {C: []}}]}", ["grid.C", "at least one value"]),
        ("train: {learners: [{grid: {C: [1, -1]}}]}", ["grid.C=-1", "above 0"]),
        (
            "train: {learners: [{grid: {C: [1]}, params: {C: 1}}]}",
            ["grid.C", "leave one of them out"],
        ),
        (
            "train: {learners: [{learner: svrank, grid: {C: [1]}, selection: leave_pair_out}]}",
            ["selection", "for mprank", "'k_fold'"],
        ),
        (
            f"train: {{learners: [{{grid: {{C: {list(range(1, 1002))}}}}}]}}",
            ["grid", "1,001 points"],
        ),
        ("train: {learners: [{learner: prank, params: {n_ranks: 5}}]}", ["n_ranks", "leave it"]),
        ("train: {learners: [{learner: prank, params: {kernel: rbf}}]}", ["item_offset: false"]),
        (
            "train: {learners: [{learner: prank, grid: {readout: [last, voted]}}]}",
            ["grid", "item_offset: false"],
        ),
        ("train: {targets_min: 5, targets_max: 4}", ["targets_min", "at most 4"]),
        ("- a\n- b", ["must hold 'key: value' lines"]),
        ("a: [1", ["not valid YAML"]),
    ],
)
def test_what_is_wrong_is_one_clear_line(tmp_path: Path, text: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    message = str(caught.value)
    assert "some.yaml" in message
    assert "\n" not in message
    for word in words:
        assert word in message
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("sets", "spark", "words"),
    [
        (("seed",), (), "write it as --set key=value"),
        (("input.pth=x",), (), "did you mean 'input.path'?"),
        ((), ("shuffle=4",), "start with 'spark.'"),
        (("seed=[1",), (), "--set seed: not valid YAML"),
    ],
)
def test_wrong_overrides(
    tmp_path: Path, sets: tuple[str, ...], spark: tuple[str, ...], words: str
) -> None:
    with pytest.raises(ConfigError, match=words.replace("?", r"\?").replace("[", r"\[")):
        load(tmp_path, "", *sets, spark=spark)


def test_a_missing_file_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "nightly.yaml").write_text("")
    with pytest.raises(ConfigError, match=r"nightli\.yaml.*did you mean .*nightly\.yaml"):
        load_config(tmp_path / "nightli.yaml")


def test_numbers_in_scientific_notation_are_numbers(tmp_path: Path) -> None:
    config = load(tmp_path, "train: {max_failed_share: 1e-3}", "input.rating_max=1e1")
    assert (config.train.max_failed_share, config.input.rating_max) == (1e-3, 10.0)


def test_spark_settings_keep_their_dots_and_become_text(tmp_path: Path) -> None:
    config = load(
        tmp_path, "spark: {spark.ui.enabled: false}", "spark.spark.a.b=2", "spark.d=3",
        spark=("spark.c=x=y",),
    )  # fmt: skip
    expected = {"spark.ui.enabled": "false", "spark.a.b": "2", "spark.d": "3", "spark.c": "x=y"}
    assert config.spark == expected


def test_every_key_is_described() -> None:
    sections = ("", "input", "synthesize", "prepare", "features", "train")
    rows = describe(Config, sections)
    assert all(key.doc for key in rows)
    assert {"store", "input.path", "train.learners"} <= {key.name for key in rows}


def test_every_format_name_has_a_reader() -> None:
    from typing import get_args

    from spark_rank.data.formats import FORMATS

    assert set(get_args(FormatName)) == FORMATS.keys()


def test_text_keys_take_the_command_line_as_it_is(tmp_path: Path) -> None:
    sets = ["run_id=20240101", r"input.delimiter=\t", "input.path=null", "input.columns.user=0"]
    config = load(tmp_path, "", *sets, "spark.spark.a=0010")
    assert (config.run_id, config.input.separator, config.input.path) == ("20240101", "\t", None)
    assert (config.input.columns["user"], config.spark["spark.a"]) == ("0", "0010")
    assert load(tmp_path, "", "input.delimiter=|", "run_id=2024-01-01").input.separator == "|"


def test_spark_settings_are_kept_as_written(tmp_path: Path) -> None:
    text = "spark: {spark.a: 1.10, spark.b: on, spark.c: 12:30:00, spark.d: 0010, spark.e: 2}"
    found = load(tmp_path, text).spark
    assert list(found.values()) == ["1.10", "on", "12:30:00", "0010", "2"]


def test_merge_keys_of_yaml(tmp_path: Path) -> None:
    text = "synthesize: &s {users: 7}\nprepare: {buckets: 3}\n"
    config = load(tmp_path, text + "input: {<<: {rating_min: 1}, rating_max: 5}\n")
    assert (config.input.rating_min, config.input.rating_max) == (1.0, 5.0)
    assert config.synthesize.users == 7
