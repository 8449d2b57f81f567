"""The command line: ``spark-rank <stage>`` and ``jobs/<stage>.py`` share everything below."""

from __future__ import annotations

import argparse
import json
import os
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import spark_rank
from spark_rank import events
from spark_rank.errors import ConfigError, SparkRankError
from spark_rank.help.commands import STAGES
from spark_rank.help.pages import PageParser
from spark_rank.planning.arguments import add_plan
from spark_rank.runs.arguments import add_folds, add_runs
from spark_rank.visible import visible
from spark_rank.wording import count_of

if TYPE_CHECKING:
    from spark_rank.config import Config

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``spark-rank``; return its exit code."""
    parser = command_parser()
    return _guarded(lambda: _dispatch(parser.parse_args(arguments)))


def command_parser() -> PageParser:
    """Return the parser of all commands."""
    parser = PageParser(
        prog="spark-rank", description="Learn one ranking model per user, on Spark."
    )
    parser.add_argument("--version", action="version", version=spark_rank.__version__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, page in STAGES.items():
        stage = commands.add_parser(name, help=page.doc, description=_sentence(page.doc))
        _add_stage_arguments(stage)
        if name == "recommend":
            _add_one_user(stage)
    _add_config(commands)
    _add_learners(commands)
    java = commands.add_parser("java", help="show which Java runtime Spark will use")
    java.add_argument("--check", action="store_true", help="print nothing on success")
    _add_explain(commands)
    _add_reproduce(commands)
    add_runs(commands, _add_config_arguments)
    add_folds(commands, _add_config_arguments)
    add_plan(commands, _add_config_arguments)
    _add_history(commands)
    _add_track(commands)
    _add_demo(commands)
    commands.add_parser("formats", help="list the formats that input.format can name")
    return parser


def run_job(stage: str, arguments: Sequence[str] | None = None) -> int:
    """Run one stage as ``jobs/<stage>.py`` does; return its exit code."""
    parser = PageParser(prog=f"jobs/{stage}.py", description=_sentence(STAGES[stage].doc))
    _add_stage_arguments(parser)
    return _guarded(lambda: _run_stage(stage, parser.parse_args(arguments)))


def _sentence(doc: str) -> str:
    return f"{doc[0].upper()}{doc[1:]}."


def _add_config(commands: Any) -> None:
    config = commands.add_parser(
        "config",
        help="show the configuration in force, or what a key means",
        description="Print the package's defaults, the file and the command line put together, as "
        "YAML that --config takes. With --explain, say what a key means.",
    )
    config.add_argument("--show", action="store_true", help="print it as YAML (the default)")
    config.add_argument(
        "--explain",
        metavar="KEY",
        help="print meaning, type, default and readers of a key, or the keys of a section",
    )
    _add_config_arguments(config)


def _add_learners(commands: Any) -> None:
    learners = commands.add_parser(
        "learners",
        help="list the learners, or show one with its parameters",
        description="List the learners: those of this package, and those of installed packages. "
        "With a name, show what that learner does, and its parameters.",
    )
    learners.add_argument(
        "name", nargs="?", metavar="NAME", help="a learner, or module:Class (default: all)"
    )


def _add_stage_arguments(parser: argparse.ArgumentParser) -> None:
    _add_config_arguments(parser)
    parser.add_argument(
        "--takeover",
        action="store_true",
        help="take over a run that another process seems to work on; that process then stops",
    )


def _add_config_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="configuration in YAML; what it does not name keeps its default, see `spark-rank "
        "config`",
    )
    _add_settings_arguments(parser)
    parser.add_argument(
        "--log-format",
        choices=events.FORMS,
        default="text",
        help="messages on stderr: lines for people, or one JSON object a line "
        "(default: %(default)s)",
    )


def _add_settings_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="extend",
        nargs="+",
        default=[],
        dest="sets",
        help="change a key of the configuration, e.g. --set run_id=monday input.path=u.data; "
        "values are YAML",
    )
    parser.add_argument(
        "--spark",
        metavar="KEY=VALUE",
        action="extend",
        nargs="+",
        default=[],
        help="change a Spark setting, e.g. --spark spark.sql.shuffle.partitions=4",
    )


def _add_explain(commands: Any) -> None:
    explain = commands.add_parser(
        "explain",
        help="explain one user's scores: own ratings beside the new list",
        description="Show a user's own ratings, ordered by score, beside the new list, and the "
        "rated items that moved the scores most. With --item, show the parts of that one score.",
    )
    explain.add_argument("--user", required=True, metavar="ID", help="id as in the input")
    explain.add_argument("--item", metavar="ID", help="one item, rated or not (default: all)")
    explain.add_argument(
        "--learner", metavar="NAME", help="label of a learner (default: recommend.learner)"
    )
    explain.add_argument(
        "--all",
        action="store_true",
        help="show all own ratings, both ends of the list, and features beside rated items",
    )
    explain.add_argument(
        "--count",
        type=int,
        metavar="N",
        help="how many features and rated items to name (default: 10; 3 to 5 without --all)",
    )
    explain.add_argument(
        "--format", choices=("text", "json"), default="text", help="JSON holds all that --all shows"
    )
    _add_config_arguments(explain)


def _add_one_user(recommend: argparse.ArgumentParser) -> None:
    recommend.add_argument(
        "--user", metavar="ID", help="make no lists; print the list that this user has in the run"
    )
    recommend.add_argument(
        "--count", type=int, metavar="N", help="with --user: number of items (default: all)"
    )
    recommend.add_argument(
        "--format", choices=("text", "json"), default="text", help="with --user: form of the list"
    )


def _add_reproduce(commands: Any) -> None:
    reproduce = commands.add_parser(
        "reproduce",
        help="run the papers' experiments that the data at hand allows, and write one report",
        description="Run the papers' experiments one after another, each as a run of its own, and "
        "write <store>/reproduce/report.html. A finished experiment is not run again. One whose "
        "data set is missing is skipped, and the report says so.",
    )
    reproduce.add_argument(
        "configs",
        nargs="*",
        metavar="NAME",
        help="experiments by their names, as published, or configuration files (default: all)",
    )
    _add_settings_arguments(reproduce)


def _add_history(commands: Any) -> None:
    history = commands.add_parser(
        "history",
        help="show the store's Spark event logs in a browser, until Ctrl-C",
        description="Start Spark's history server over the event logs of the store, on this "
        "machine's loopback address unless SPARK_LOCAL_IP names another.",
    )
    history.add_argument("--port", type=int, default=18080, help="(default: %(default)s)")
    history.add_argument(
        "--delete-older-than",
        type=float,
        metavar="DAYS",
        help="start no server; delete event logs that were last written to before that",
    )
    _add_config_arguments(history)


def _add_track(commands: Any) -> None:
    track = commands.add_parser(
        "track",
        help="send a run to MLflow that is there already",
        description="Make or update the MLflow run of a run, as `pipeline` does at its end, where "
        "MLflow could not be reached then, or was not configured.",
    )
    _add_config_arguments(track)


def _add_demo(commands: Any) -> None:
    demo = commands.add_parser(
        "demo",
        help="write a page that learns in a browser: choose, rate, see the others ranked",
        description="Write <store>/runs/run_id=<id>/demo/index.html: one page, to be opened from a "
        "disk or a telephone, that needs no server and no network. Whoever rates a few items in it "
        "sees MPRank and PRank learn, and all other items in the order that they learned.",
    )
    _add_config_arguments(demo)


def _dispatch(options: argparse.Namespace) -> int:
    if "log_format" in options:
        events.configure(options.log_format)
    if options.command == "recommend" and options.user is not None:
        return _show_user_list(options)
    own: dict[str, Callable[[argparse.Namespace], int]] = {
        "java": _show_java, "config": _show_config, "formats": _show_formats,
        "learners": _show_learners, "explain": _explain, "reproduce": _reproduce,
        "runs": _manage_runs, "plan": _show_plan, "history": _show_history, "track": _track,
        "demo": _make_demo, "folds": _show_folds,
    }  # fmt: skip
    if options.command in own:
        return own[options.command](options)
    return _run_stage(options.command, options)


def _manage_runs(options: argparse.Namespace) -> int:
    from spark_rank.config import load_config

    config = load_config(options.config, options.sets, options.spark)
    from spark_rank.runs.commands import manage

    manage(options, config)
    return 0


def _show_folds(options: argparse.Namespace) -> int:
    from spark_rank.config import load_config

    config = load_config(options.config, options.sets, options.spark)
    from spark_rank.runs.folds import show_folds

    show_folds(options, config)
    return 0


def _show_plan(options: argparse.Namespace) -> int:
    from spark_rank.config import load_config

    config = load_config(options.config, options.sets, options.spark)
    from spark_rank.runs.planning import show_plan
    from spark_rank.stages import pipeline

    show_plan(options, config, pipeline(config))
    return 0


def _run_stage(stage: str, options: argparse.Namespace) -> int:
    from spark_rank.config import load_config

    events.configure(options.log_format)
    # the configuration is checked before Spark is even imported: a typo answers at once
    config = load_config(options.config, options.sets, options.spark)
    events.configure(options.log_format, config.run_id)
    from spark_rank.stages.execution import execute

    execute(stage, config, takeover=options.takeover)
    return 0


def _track(options: argparse.Namespace) -> int:
    from spark_rank.config import load_config

    config = load_config(options.config, options.sets, options.spark)
    from spark_rank.runs.tracking import track

    print(f"MLflow run {track(config)} at {config.tracking.mlflow}", flush=True)
    return 0


def _make_demo(options: argparse.Namespace) -> int:
    from spark_rank.config import load_config

    config = load_config(options.config, options.sets, options.spark)
    from spark_rank.runs.demo import make_demo

    page = make_demo(config)
    size = f"{page.size / 1e6:.1f} MB, {count_of(page.items, 'item')}"
    print(f"demo        {page.path.removeprefix('file:')} ({size})", flush=True)
    return 0


def _explain(options: argparse.Namespace) -> int:
    from spark_rank.config import load_config

    config = load_config(options.config, options.sets, options.spark)
    from spark_rank.report.explanation import as_text
    from spark_rank.runs.users import Question, explain

    count = None if options.count is None else max(0, options.count)
    asked = {} if count is None else {"count": count}
    found = explain(config, Question(options.user, options.item, options.learner, **asked))
    if options.format == "json":
        print(json.dumps(found, indent=2), flush=True)
    else:
        print(as_text(found, everything=options.all, count=count), flush=True)
    return 0


def _show_user_list(options: argparse.Namespace) -> int:
    from spark_rank.config import load_config

    config = load_config(options.config, options.sets, options.spark)
    from spark_rank.runs.users import as_json, as_text, user_list

    count = None if options.count is None else max(0, options.count)
    rows = user_list(config, options.user, count)
    print(as_json(rows) if options.format == "json" else as_text(rows), flush=True)
    return 0


def _reproduce(options: argparse.Namespace) -> int:
    from spark_rank.experiments import EXPERIMENTS

    configs = [_experiment_config(name, options) for name in options.configs or sorted(EXPERIMENTS)]
    from spark_rank.stages.reproduce import reproduce

    print(f"report      {reproduce(configs).removeprefix('file:')}", flush=True)
    return 0


def _experiment_config(name: str, options: argparse.Namespace) -> Config:
    """Return the configuration of an experiment as published, or what a file says."""
    from spark_rank.config import load_config
    from spark_rank.config.values import suggestion
    from spark_rank.experiments import EXPERIMENTS

    if name in EXPERIMENTS:
        sets = [f"run_id={name}", f"experiment.name={name}", *options.sets]
        return load_config(None, sets, options.spark)
    if "." not in name and not Path(name).exists():
        hint = suggestion(name, EXPERIMENTS)
        raise ConfigError(f"reproduce: {visible(name, 60)!r} is no experiment and no file ({hint})")
    return load_config(name, options.sets, options.spark)


def _show_config(options: argparse.Namespace) -> int:
    from spark_rank.config import load_config, to_yaml

    if options.explain is not None:
        from spark_rank.help.keys import explained

        print(explained(options.explain), flush=True)
        return 0
    print(to_yaml(load_config(options.config, options.sets, options.spark)), end="")
    return 0


def _show_learners(options: argparse.Namespace) -> int:
    from spark_rank.help.learners import learner_page, learner_table

    print(learner_table() if options.name is None else learner_page(options.name), flush=True)
    return 0


def _show_formats(_: argparse.Namespace) -> int:
    from spark_rank.data.formats import FORMATS

    width = max(map(len, FORMATS))
    for name, known in FORMATS.items():
        encoding = known.encoding if name != "parquet" else ""
        print(f"{name:<{width}}  {encoding:<7}  {known.example}")
    return 0


def _show_history(options: argparse.Namespace) -> int:
    from spark_rank.config import load_config
    from spark_rank.session.event_logs import history_command, history_directory

    if options.delete_older_than is not None:
        return _delete_event_logs(options)
    config = load_config(options.config, options.sets, options.spark)
    directory = history_directory(config.spark, config.store)
    command, environment = history_command(directory, options.port)
    print(f"http://127.0.0.1:{options.port} shows {directory}; Ctrl-C ends it", flush=True)
    os.execve(command[0], command, environment)


def _delete_event_logs(options: argparse.Namespace) -> int:
    from spark_rank.config import load_config

    config = load_config(options.config, options.sets, options.spark)
    from spark_rank.session.event_logs import check_age, delete_event_logs
    from spark_rank.session.session import on_this_machine, spark_session

    days = check_age(options.delete_older_than, config.spark)
    with spark_session("spark_rank history", on_this_machine(config.spark)) as spark:
        gone = delete_event_logs(spark, config.store, days)
    print(f"{count_of(len(gone), 'event log')} older than {days:g} days deleted", flush=True)
    return 0


def _show_java(options: argparse.Namespace) -> int:
    from spark_rank.session.java import find_java

    runtime = find_java()
    if not options.check:
        print(f"Java {runtime.version} from {runtime.source}")
        for name, value in runtime.environment().items():
            print(f"export {name}={value}")
    return 0


def _guarded(action: Callable[[], int]) -> int:
    """Turn every end of a run into an exit code and, when it failed, one clear line on stderr."""
    try:
        return action()
    except SparkRankError as error:
        return _failed(error, str(error), error.exit_code)
    except KeyboardInterrupt as error:
        again = "interrupted; the same command goes on with the stage that was running"
        return _failed(error, again, INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - the last resort names the error and its place
        trace = traceback.format_exc()
        events.process_log().trace(trace)
        said = f"{type(error).__name__}: {_first_line(error)}"
        return _failed(error, said, 1, traceback=trace)


def _failed(error: BaseException, said: str, exit_code: int, **fields: Any) -> int:
    events.emit(
        "failed", said, level="error", exit_code=exit_code, error=type(error).__name__, **fields
    )
    return exit_code


def _first_line(error: Exception) -> str:
    from spark_rank.session.filesystem import java_reason

    return java_reason(error)
