"""What can go wrong in preference-based ranking, by name; each message says what to do."""


class PreferenceError(ValueError):
    """Base of every error that this package raises on purpose."""


class InvalidPreferenceError(PreferenceError):
    """A preference is not a number in [0, 1], or its two directions do not sum to 1."""


class InvalidRankingError(PreferenceError):
    """A ranking repeats an item, misses one, or names one that is not known."""


class InvalidMajoritiesError(PreferenceError):
    """The counts of voters per pair are not a square matrix of non-negative numbers."""


class InvalidSettingError(PreferenceError):
    """An argument such as k, a method's name or a time limit is out of range."""
