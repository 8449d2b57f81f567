"""The errors of preference-based ranking; each message says what to do."""


class PreferenceError(ValueError):
    """Base of every error of preference-based ranking."""


class InvalidPreferenceError(PreferenceError):
    """A preference is not a number in [0, 1], or its two directions do not sum to 1."""


class InvalidRankingError(PreferenceError):
    """A ranking repeats an item, misses one, or names an unknown one."""


class InvalidMajoritiesError(PreferenceError):
    """The counts of voters per pair are not a square matrix of non-negative numbers."""


class InvalidSettingError(PreferenceError):
    """An argument such as k, a method's name or a time limit is out of range."""
