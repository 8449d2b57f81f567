"""What every command is for: its sentence, the keys that its stage reads, and examples."""

from __future__ import annotations

from dataclasses import dataclass

# what every stage needs to know: where the run is, and what its draws follow from
RUN_KEYS = ("store", "run_id", "seed", "spark")

# which ensembles there are, for stages that go over all models
_ENSEMBLES = ("ensemble.learners", "ensemble.sequence", "ensemble.user")
# what everything that learns users goes by
_LEARNING = (
    "train.min_ratings", "train.margin", "train.max_failed_share", "train.max_kernel_ratings",
    "train.landmarks", "train.folds", "train.targets_min", "train.targets_max", "train.weights",
)  # fmt: skip


@dataclass(frozen=True)
class StageHelp:
    """One stage: what it does, sections and keys of the configuration that it reads, examples.

    `sections` are its own; `others` are what it reads besides: keys, or whole sections.
    """

    doc: str
    sections: tuple[str, ...]
    examples: tuple[str, ...]
    others: tuple[str, ...] = ()

    def reads(self, key: str) -> bool:
        """Tell whether the stage reads the key of this dotted name."""
        known = (*RUN_KEYS, *self.sections, *self.others)
        return any(key == name or key.startswith(f"{name}.") for name in known)


STAGES = {
    "synthesize": StageHelp(
        "write a generated, Netflix-shaped data set",
        ("synthesize",),
        (
            "spark-rank synthesize --set synthesize.users=1000",
            "spark-rank synthesize --set synthesize.path=/data/generated synthesize.format=csv",
        ),
    ),
    "ingest": StageHelp(
        "read raw ratings, number users and items, set unusable rows aside",
        ("input",),
        (
            "spark-rank ingest --set input.path=ratings.csv run_id=mine",
            "spark-rank ingest --set input.path=u.data input.format=movielens-100k",
            "spark-rank ingest --set input.path=votes.csv "
            "input.columns='{user: who, item: film, rating: stars}'",
        ),
        (
            "previous", "prepare.buckets", "synthesize.path", "synthesize.format",
            "synthesize.levels",
        ),
    ),
    "prepare": StageHelp(
        "gather each user's ratings, split into training and test part",
        ("prepare",),
        (
            "spark-rank prepare --set prepare.train_share=0.8",
            "spark-rank prepare --set prepare.split=leave_last "
            "prepare.filters='[{user_min: 20, item_min: 10}]'",
        ),
    ),
    "features": StageHelp(
        "make item features: learned, given, or ratings of reviewers",
        ("features",),
        (
            "spark-rank features --set features.rank=64",
            "spark-rank features --set features.given=vectors.parquet",
        ),
    ),
    "tune": StageHelp(
        "choose hyper-parameters on a sample of users, where a learner has a grid",
        ("tune", "train"),
        (
            "spark-rank tune --set train.learners='[{learner: svrank, grid: {C: [1, 10, 100]}}]'",
            "spark-rank tune --set tune.users=5000 "
            "train.learners='[{learner: mprank, grid: {C: [0.1, 1, 10]}}]'",
        ),
        ("features",),
    ),
    "train": StageHelp(
        "learn one model per user",
        ("train",),
        (
            "spark-rank train",
            "spark-rank train --set train.learners='[{learner: svrank, params: {C: 10}}]'",
            "spark-rank train --config conf/kernel.yaml --spark spark.driver.memory=8g",
        ),
        ("previous", "users_per_wave", "features.kind", "tune.users"),
    ),
    "ensemble": StageHelp(
        "learn ensembles of PRanks in parallel, for every user or on one sequence",
        ("ensemble",),
        (
            "spark-rank ensemble --set ensemble.learners='[{combine: voted, n_members: 50}]'",
            "spark-rank ensemble --set ensemble.sequence=examples.parquet",
        ),
        ("prepare.buckets", *_LEARNING),
    ),
    "evaluate": StageHelp(
        "compute metrics per user, their distributions, comparisons, ROC curves and bounds",
        ("evaluate",),
        ("spark-rank evaluate", "spark-rank evaluate --set evaluate.top_n=20"),
        ("train.learners", "train.margin", "train.min_ratings", *_ENSEMBLES),
    ),
    "predictions": StageHelp(
        "write every held-out rating beside the scores of all models",
        ("predictions",),
        ("spark-rank predictions", "spark-rank predictions --set run_id=monday"),
        _ENSEMBLES,
    ),
    "rank": StageHelp(
        "order each user's held-out items by a preference function",
        ("rank",),
        (
            "spark-rank rank --set rank.method=degree",
            "spark-rank rank --set rank.top=20",
        ),
        ("train.learners", *_ENSEMBLES),
    ),
    "aggregate": StageHelp(
        "find the order of the most rated items that users agree on",
        ("aggregate",),
        (
            "spark-rank aggregate --set aggregate.items=50",
            "spark-rank aggregate --set aggregate.method=exact aggregate.items=20",
        ),
    ),
    "refit": StageHelp(
        "learn features and models again from all ratings, for the lists",
        ("refit",),
        ("spark-rank refit", "spark-rank refit --set recommend.learner=item_offset"),
        (
            "previous", "users_per_wave", "features", "tune.users", "train", *_ENSEMBLES,
            "recommend.learner",
        ),
    ),
    "recommend": StageHelp(
        "list each user's best and worst unseen items, with scores and predicted ranks",
        ("recommend",),
        (
            "spark-rank recommend --set recommend.top=20 recommend.bottom=0",
            "spark-rank recommend --set recommend.exclude_from=gone.txt",
            "spark-rank recommend --user 7 --count 3",
        ),
        ("users_per_wave", "train.learners", "train.baselines", *_ENSEMBLES, "refit.in_pipeline"),
    ),
    "theorems": StageHelp(
        "put the theorems of preference-based ranking to the test",
        ("theorems",),
        ("spark-rank theorems", "spark-rank theorems --set theorems.trials=1000"),
    ),
    "experiment": StageHelp(
        "run one of the papers' experiments, and its report",
        ("experiment",),
        (
            "spark-rank experiment --set experiment.name=prank_synthetic",
            "spark-rank experiment --config conf/paper/mprank_table1.yaml",
        ),
    ),
    "report": StageHelp(
        "write the run's HTML report",
        (),
        ("spark-rank report", "spark-rank report --set run_id=monday"),
    ),
    "pipeline": StageHelp(
        "run all stages in order",
        (
            "input", "synthesize", "prepare", "features", "tune", "train", "ensemble", "evaluate",
            "predictions", "rank", "aggregate", "refit", "recommend", "tracking",
        ),
        (
            "spark-rank pipeline",
            "spark-rank pipeline --set input.path=ratings.csv run_id=mine",
            "spark-rank pipeline --config conf/kernel.yaml --spark spark.driver.memory=8g",
        ),
        ("previous", "users_per_wave"),
    ),
}  # fmt: skip

# examples of all other commands; "" is spark-rank itself
EXAMPLES = {
    "": (
        "spark-rank pipeline --set input.path=ratings.csv run_id=mine",
        "spark-rank recommend --user 7 --count 3",
        "spark-rank learners mprank",
    ),
    "config": (
        "spark-rank config --set features.kind=panel",
        "spark-rank config --explain features.rank",
        "spark-rank config --explain features",
    ),
    "learners": ("spark-rank learners", "spark-rank learners svrank"),
    "java": ("spark-rank java", "spark-rank java --check"),
    "explain": (
        "spark-rank explain --user 7",
        "spark-rank explain --user 7 --item 12",
        "spark-rank explain --user 7 --all --format json",
    ),
    "reproduce": (
        "spark-rank reproduce prank_synthetic bounds",
        "spark-rank reproduce --set experiment.data=/data/papers",
    ),
    "runs": ("spark-rank runs list", "spark-rank runs show default"),
    "runs list": ("spark-rank runs list", "spark-rank runs list --format json"),
    "runs show": ("spark-rank runs show default", "spark-rank runs show --set run_id=default"),
    "runs diff": (
        "spark-rank runs diff monday tuesday",
        "spark-rank runs diff monday tuesday --format json",
    ),
    "runs verify": ("spark-rank runs verify", "spark-rank runs verify --run monday"),
    "runs prune": (
        "spark-rank runs prune --keep 7",
        "spark-rank runs prune --older-than 30 --yes",
    ),
    "runs promote": (
        "spark-rank runs promote default",
        "spark-rank runs promote --set run_id=monday",
    ),
    "folds": ("spark-rank folds fold1 fold2 fold3", "spark-rank folds fold1 fold2 --format json"),
    "plan": (
        "spark-rank plan --set input.path=ratings.csv",
        "spark-rank plan --ratings 100000000 --users 480000 --items 18000 --cores 16",
    ),
    "history": ("spark-rank history", "spark-rank history --delete-older-than 30"),
    "track": (
        "spark-rank track --set run_id=tuesday tracking.mlflow=http://127.0.0.1:5000",
        "spark-rank track --set run_id=tuesday tracking.mlflow=sqlite:///mlflow.db",
    ),
    "demo": (
        "spark-rank demo --set run_id=monday",
        "spark-rank demo --set demo.items=2000 demo.noun=jokes",
    ),
    "formats": ("spark-rank formats", "spark-rank ingest --set input.path=u.data input.format=csv"),
}

# sections of the configuration that commands without a stage read
_SECTIONS = {
    "explain": ("recommend",), "reproduce": ("experiment",), "track": ("tracking",),
    "demo": ("demo",),
}  # fmt: skip


def examples_of(command: str) -> tuple[str, ...]:
    """Return lines to try of a command, which is named as on the command line."""
    return STAGES[command].examples if command in STAGES else EXAMPLES[command]


def sections_of(command: str) -> tuple[str, ...]:
    """Return the sections of the configuration that are a command's own."""
    return STAGES[command].sections if command in STAGES else _SECTIONS.get(command, ())


def commands_that_read(key: str) -> list[str]:
    """Return the commands without a stage that read a key of this dotted name."""
    section = key.partition(".")[0]
    return [command for command, sections in _SECTIONS.items() if section in sections]
