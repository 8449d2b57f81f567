"""The errors of learners; each message says what to do."""


class LearnerError(ValueError):
    """Base of every error that a learner raises on purpose."""


class InvalidParameterError(LearnerError):
    """A hyper-parameter is of the wrong type or out of range."""


class InvalidDataError(LearnerError):
    """The training or scoring arrays cannot be used."""


class UnknownLearnerError(LearnerError):
    """No learner has that name, or the named class is not a learner."""


class NotFittedError(LearnerError):
    """The learner was asked to score before it learned."""


class NumericFailureError(LearnerError):
    """The arithmetic broke down (a matrix that is not positive definite, an overflow)."""
