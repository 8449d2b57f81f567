"""Errors that end a run. Each has an exit code; its message says what to do."""


class SparkRankError(Exception):
    """Base of every error that is reported as one clear line, without a stack trace."""

    exit_code = 1


class ConfigError(SparkRankError):
    """The configuration or the command line is wrong."""

    exit_code = 2


class UnknownIdError(ConfigError):
    """A run has no user or item of this id."""

    def __init__(self, message: str, unknown: str) -> None:
        super().__init__(message)
        self.unknown = unknown


class RunHeldError(ConfigError):
    """Another process is working on the run."""


class InputDataError(SparkRankError):
    """The input is missing, empty, or too much of it is unusable."""

    exit_code = 3


class ContractError(InputDataError):
    """A table does not have the columns that its contract promises."""


class TooManyFailuresError(SparkRankError):
    """More users failed than the configuration allows."""

    exit_code = 4


class ExperimentsFailedError(SparkRankError):
    """Some of several experiments failed; the exit code is that of the first failure."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class StorageError(SparkRankError):
    """A disk is full, or cannot be written to."""


class RuntimeMissingError(SparkRankError):
    """The machine lacks something that Spark needs, such as Java."""


class SparkDiedError(SparkRankError):
    """The JVM that runs Spark ended while it was still needed."""
