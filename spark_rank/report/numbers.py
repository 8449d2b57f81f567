"""Numbers as a report shows them."""

from __future__ import annotations


def shown(value: float | None, form: str = ".4g") -> str:
    """Return a number in a Python format, with a true minus sign and no minus before a zero.

    None is a dash.
    """
    if value is None:
        return "–"
    text = format(value, form)
    if float(text.replace(",", "")) == 0.0:
        text = text.replace("-", "+" if form.startswith("+") else "")
    return text.replace("-", "−")


def interval(low: float | None, high: float | None) -> str:
    """Return an interval in words."""
    return "–" if low is None or high is None else f"{shown(low)} to {shown(high)}"


def p_value(value: float | None) -> str:
    """Return a p-value with four digits behind the point."""
    return "< 0.0001" if value is not None and value < 1e-4 else shown(value, ".4f")
