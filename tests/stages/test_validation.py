"""A stage refuses its own section, however the configuration was made, and before Spark starts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_rank.config import Config, load_config, to_yaml
from spark_rank.config.schema import (
    EnsembleConfig,
    EvaluateConfig,
    ExperimentConfig,
    FeaturesConfig,
    InputConfig,
    PrepareConfig,
    RankConfig,
    RecommendConfig,
    TrainConfig,
)
from spark_rank.errors import ConfigError
from spark_rank.stages import STAGES, execution
from spark_rank.stages.execution import execute
from spark_rank.stages.runner import validate

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "ingest": ({"input": InputConfig(rating_min=5.0, rating_max=1.0)}, "input.rating_min: 5 must"),
    "prepare": ({"prepare": PrepareConfig(fold=9)}, "prepare.fold: 9 must be at most"),
    "features": ({"features": FeaturesConfig(kind="given")}, "features.kind: 'given' needs"),
    "train": ({"train": TrainConfig(learners=[])}, "train.learners: name at least one"),
    "tune": ({"train": TrainConfig(targets_min=2, targets_max=1)}, "train.targets_min: 2 must"),
    "ensemble": ({"ensemble": EnsembleConfig(trials=2)}, "ensemble.trials: 2 is for a sequence"),
    "evaluate": ({"evaluate": EvaluateConfig(activity=[3, 2])}, "evaluate.activity: [3, 2] must"),
    "rank": ({"rank": RankConfig(learners=["who"])}, "rank.learners[0]: no learner is called"),
    "recommend": ({"recommend": RecommendConfig(learner="who")}, "recommend.learner: no learner"),
    "experiment": ({"experiment": ExperimentConfig(name="who")}, "unknown experiment 'who'"),
}


def wrong(stage: str) -> tuple[Config, str]:
    sections, said = WRONG[stage]
    return replace(Config(), **sections), said


@pytest.mark.parametrize("stage", WRONG)
def test_a_configuration_made_by_hand_is_refused_before_spark_starts(
    stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(*_: Any) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(execution, "spark_session", start)
    config, said = wrong(stage)
    with pytest.raises(ConfigError) as error:
        execute(stage, config)
    assert said in str(error.value)


@pytest.mark.parametrize("stage", WRONG.keys() - {"experiment"})
def test_the_same_from_a_file_is_refused_when_it_is_read(stage: str, tmp_path: Path) -> None:
    config, said = wrong(stage)
    path = tmp_path / "wrong.yaml"
    path.write_text(to_yaml(config))
    with pytest.raises(ConfigError) as error:
        load_config(path)
    assert str(error.value).startswith(f"{path}: {said}")


def test_what_is_sound_is_taken_by_all_stages() -> None:
    others = [stage for name, stage in STAGES.items() if name != "experiment"]
    validate(others, load_config(None))
    validate(others, Config())
