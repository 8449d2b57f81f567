"""The registry, the configurations in conf/paper, and the draws of a study."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from spark_rank.config import load_config
from spark_rank.config.values import convert
from spark_rank.errors import ConfigError
from spark_rank.experiments import EXPERIMENTS
from spark_rank.experiments.frame import Study
from spark_rank.stages.experiment import chosen_experiment

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "conf" / "paper").glob("*.yaml"))


def test_every_experiment_has_its_configuration() -> None:
    assert {path.stem for path in FILES} == EXPERIMENTS.keys()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_configurations_name_all_settings_and_say_what_they_are(path: Path) -> None:
    config = load_config(path)
    assert config.experiment.name == config.run_id == path.stem
    kind = EXPERIMENTS[path.stem].settings
    assert config.experiment.settings.keys() == {field.name for field in dataclasses.fields(kind)}
    # what the file says is what the class says when nothing is said
    assert convert(kind, config.experiment.settings, "") == kind()
    assert path.read_text().startswith("# ")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiments_say_what_they_are(name: str) -> None:
    experiment = EXPERIMENTS[name]
    assert experiment.name == name
    assert experiment.average in ("unit", "repeat", "target")
    for field in dataclasses.fields(experiment.settings):
        assert field.metadata["doc"]
    for text in (experiment.title, experiment.source, experiment.about):
        assert text.strip()


def test_an_unknown_experiment_or_setting_is_named(tmp_path: Path) -> None:
    path = tmp_path / "one.yaml"
    path.write_text("experiment: {name: prank_syntetic}")
    with pytest.raises(ConfigError, match="did you mean 'prank_synthetic'"):
        chosen_experiment(load_config(path))
    path.write_text("experiment: {name: prank_synthetic, settings: {repeat: 3}}")
    with pytest.raises(ConfigError, match=r"experiment\.settings\.repeat' \(did you mean"):
        chosen_experiment(load_config(path))
    path.write_text("experiment: {name: prank_synthetic, settings: {repeats: 0}}")
    with pytest.raises(ConfigError, match=r"experiment\.settings\.repeats: must be at least 1"):
        chosen_experiment(load_config(path))


def test_draws_depend_on_seed_experiment_and_keys_alone() -> None:
    def draw(name: str, seed: int, *keys: int | str) -> float:
        return float(Study(name, None, seed).generator(*keys).random())

    first = draw("one", 0, "split", 7)
    assert draw("one", 0, "split", 7) == first
    others = [
        draw("two", 0, "split", 7),
        draw("one", 1, "split", 7),
        draw("one", 0, "split", 8),
        draw("one", 0, "split", "7"),
        draw("one", 0, 7, "split"),
    ]
    assert len({first, *others}) == 6
