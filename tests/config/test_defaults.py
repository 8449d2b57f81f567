"""One set of defaults, the package's: below every file, in help, and in any directory."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import yaml

from spark_rank import cli
from spark_rank.config import Config, LearnerConfig, load_config, to_yaml
from spark_rank.config.describing import describe
from spark_rank.config.fitting import PARAMS
from spark_rank.config.schema import EnsembleLearnerConfig, FeatureKind
from spark_rank.errors import ConfigError
from spark_rank.experiments import EXPERIMENTS
from spark_rank.learners import MPRank
from spark_rank.metrics import mean_squared_difference
from spark_rank.session.session import DEFAULTS

CONF = Path(__file__).parents[2] / "conf"
SHOWN = (CONF / "default.yaml").read_text()
# keys that other keys decide where they are not named: shown as comments
OPEN = re.compile(r"^(\s*)# (kind: |learners:|  - name: |    learner: |    params: )", re.MULTILINE)
SECTIONS = ("", *(field.name for field in dataclasses.fields(Config)))


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "own.yaml"
    path.write_text(text)
    return path


def leaves(tree: Any, key: str = "") -> dict[str, Any]:
    """Return the values of a tree by their dotted keys; what is below `spark` is one value."""
    if not isinstance(tree, dict) or key == "spark":
        return {key: tree}
    found = {}
    for name, value in tree.items():
        found |= leaves(value, f"{key}.{name}" if key else name)
    return found


def test_an_own_file_gets_what_the_shown_defaults_are(tmp_path: Path) -> None:
    own = load_config(written(tmp_path, "store: elsewhere\ninput: {path: x.csv, format: csv}\n"))
    default = load_config(CONF / "default.yaml")
    assert (own.train, own.features, own.prepare) == (
        default.train, default.features, default.prepare
    )  # fmt: skip
    (learner,) = own.train.learners
    assert learner.label == "mprank_linear"
    assert learner.params == {"C": 1.0, "ridge": "fixed", "growth": 0.0067, "kernel": "linear"}
    assert (own.train.min_ratings, own.synthesize.items) == (3, 2500)


@pytest.mark.parametrize("text", [SHOWN, OPEN.sub(r"\1\2", SHOWN)], ids=["as it is", "uncommented"])
def test_the_shown_defaults_are_the_packages(text: str, tmp_path: Path) -> None:
    shown = yaml.safe_load(text)
    settings = shown.pop("spark")
    assert {name: str(value) for name, value in settings.items()}.items() <= DEFAULTS.items()
    defaults = leaves(dataclasses.asdict(Config()))
    for key, value in leaves(shown).items():
        if key != "train.learners":
            assert value == defaults[key], key
    config = load_config(written(tmp_path, text))
    assert dataclasses.replace(config, spark={}) == Config() == load_config(None)


def test_the_open_keys_are_shown_too() -> None:
    assert {"kind", "learners"} <= {found[1].strip(" -:") for found in OPEN.findall(SHOWN)}


@pytest.mark.parametrize("key", [key.name for key in describe(Config, SECTIONS)])
def test_a_printed_default_can_be_typed_back(key: str) -> None:
    printed = {each.name: each.default for each in describe(Config, SECTIONS)}[key]
    assert load_config(None, [f"{key}={printed}"]) == load_config(None)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiments_printed_defaults_can_be_typed_back(name: str) -> None:
    kind = EXPERIMENTS[name].settings
    for key in describe(kind, ("",)):
        sets = [f"experiment.name={name}", f"experiment.settings.{key.name}={key.default}"]
        settings = load_config(None, sets).experiment.settings
        assert settings[key.name] == getattr(kind(), key.name), key


def test_an_entrys_printed_defaults_can_be_typed_back() -> None:
    for place, kind in (("train", LearnerConfig), ("ensemble", EnsembleLearnerConfig)):
        for key in describe(kind, ("",)):
            config = load_config(None, [f"{place}.learners=[{{{key.name}: {key.default}}}]"])
            (entry,) = getattr(config, place).learners
            params = {"params": PARAMS["factors"]} if place == "train" else {}
            assert entry == kind(**params)


def test_help_prints_these_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    for key in describe(Config, SECTIONS):
        assert cli.main(["config", "--explain", key.name]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert f"  default   {key.default}" in lines


@pytest.mark.parametrize("kind", [kind for kind in get_args(FeatureKind) if kind != "given"])
def test_hyper_parameters_fit_the_kind_of_features(kind: FeatureKind) -> None:
    config = load_config(None, [f"features.kind={kind}"])
    assert config.train.learners == [LearnerConfig("mprank", "mprank_linear", params=PARAMS[kind])]
    assert f"kind: {kind}" in to_yaml(config)
    named = load_config(None, [f"features.kind={kind}", "train.learners=[{item_offset: false}]"])
    assert named.train.learners == [LearnerConfig(item_offset=False, params=PARAMS[kind])]


@pytest.mark.parametrize(
    "entry", ["{params: {kernel: rbf}}", "{grid: {C: [1, 2]}}", "{learner: svrank}"]
)
def test_what_somebody_names_stays(entry: str) -> None:
    named = yaml.safe_load(entry)
    config = load_config(None, ["features.kind=panel", f"train.learners=[{entry}]"])
    assert config.train.learners == [LearnerConfig(**named)]


@pytest.mark.parametrize(
    "sets", [["input.path=x", "input.format=letor"], ["features.given=vectors.parquet"]]
)
def test_vectors_that_come_with_the_data_are_the_features(sets: list[str]) -> None:
    config = load_config(None, sets)
    assert config.features.kind == "given"
    assert config.train.learners[0].params == PARAMS["given"]


def test_a_file_decides_for_the_command_line_too(tmp_path: Path) -> None:
    path = written(tmp_path, "input: {format: letor}\n")
    assert load_config(path).features.kind == "factors"  # the generated data set
    assert load_config(path, ["input.path=x"]).features.kind == "given"


@pytest.mark.parametrize("kind", [kind for kind in get_args(FeatureKind) if kind != "given"])
def test_letor_learns_from_given_vectors_alone(kind: str) -> None:
    sets = ["input.path=x", "input.format=letor", f"features.kind={kind}"]
    with pytest.raises(ConfigError, match=rf"features\.kind: '{kind}' has nothing to learn from"):
        load_config(None, sets)


def test_with_genres_the_default_ends_better_than_a_constant(
    data_file: Callable[[str], Path],
) -> None:
    """The same data with the hyper-parameters of factors end far behind the constant."""
    ratings = np.loadtxt(data_file("ml-100k/u.data"), dtype=np.int64)[:, :3]
    lines = data_file("ml-100k/u.item").read_text(encoding="latin-1").splitlines()
    flags = np.array([line.split("|")[-19:] for line in lines], dtype=float)
    spread = flags.std(axis=0)
    features = (flags - flags.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    training = np.random.default_rng(0).random(len(ratings)) < 0.5
    errors: dict[str, list[float]] = {"constant": [], "given": [], "factors": []}
    for user in np.unique(ratings[:, 0]):
        known, others = (ratings[(ratings[:, 0] == user) & part] for part in (training, ~training))
        if len(known) < 3 or len(np.unique(others[:, 2])) < 2:
            continue
        y = others[:, 2].astype(float)
        errors["constant"].append(mean_squared_difference(np.zeros(len(y)), y))
        for kind in ("given", "factors"):
            model = MPRank(**PARAMS[kind]).fit(features[known[:, 1] - 1], known[:, 2].astype(float))
            scores = model.decision_function(features[others[:, 1] - 1])
            errors[kind].append(mean_squared_difference(scores, y))
    constant, given, factors = (float(np.mean(found)) for found in errors.values())
    assert given < 0.99 * constant < 0.8 * factors


def test_shipped_configurations_name_their_hyper_parameters() -> None:
    for path in CONF.glob("*.yaml"):
        text = yaml.safe_load(path.read_text())
        if path.name != "default.yaml":
            assert load_config(path).train.learners == [
                LearnerConfig(**entry) for entry in text["train"]["learners"]
            ]


def test_commands_need_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["config"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["prepare"]["buckets"] == 8
    # a file that happens to lie there is read only where it is named
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "default.yaml").write_text("seed: 7")
    assert cli.main(["config"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["seed"] == 0
    assert cli.main(["config", "--config", "conf/default.yaml"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["seed"] == 7
    assert cli.main(["train", "--set", "seed=-1"]) == 2
    assert "spark-rank: --set: seed: must be at least 0" in capsys.readouterr().err


def test_reproduce_knows_the_experiments_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from spark_rank.stages import reproduce

    asked: list[Config] = []

    def note(configs: list[Config]) -> str:
        reproduce.check_configs(configs)
        asked[:] = configs
        return "file:/there"

    monkeypatch.setattr(reproduce, "reproduce", note)
    monkeypatch.chdir(tmp_path)
    assert cli.main(["reproduce", "--set", "experiment.data=here"]) == 0
    assert [config.run_id for config in asked] == sorted(EXPERIMENTS)
    assert {config.experiment.data for config in asked} == {"here"}
    assert cli.main(["reproduce", "bounds", str(CONF / "paper" / "modern.yaml")]) == 0
    assert [config.experiment.name for config in asked] == ["bounds", "modern"]
    assert cli.main(["reproduce", "bouns"]) == 2
    assert "did you mean 'bounds'?" in capsys.readouterr().err
