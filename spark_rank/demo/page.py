"""Puts a page together: one file with its style, its script and the run's numbers."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import escape
from importlib.resources import files

from spark_rank.demo.contents import Contents
from spark_rank.redaction import redact
from spark_rank.store.self_checked import checked_page
from spark_rank.visible import visible

# in the order in which they use each other
SCRIPTS = (
    "linear_algebra", "contents", "mprank", "prank", "proposals", "search", "exchange", "state",
    "elements", "stars", "drawing", "choosing", "rating", "learning", "lists", "files", "page",
)  # fmt: skip
_PLACE = re.compile(r"\{\{(\w+)\}\}")


def page_of(contents: Contents) -> str:
    """Return the page; nothing in it runs but its own script, and nothing is fetched or sent."""
    style, script = _asset("page.css"), _script()
    values = {
        "policy": policy(style, script),
        "style": style,
        "script": script,
        "data": embedded(contents),
        "run": _escaped(contents.run_id),
        "noun": _escaped(contents.noun),
        "count": f"{len(contents.item_ids):,}",
        "about": "".join(f"\n<li>{_escaped(line)}</li>" for line in about(contents)),
    }
    # in one pass: no value is searched for places again
    return checked_page(_PLACE.sub(lambda found: values[found[1]], _asset("page.html")))


def policy(style: str, script: str) -> str:
    """Return the content policy: this style, this script, and nothing else."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; "
        "trusted-types 'none'"
    )


def embedded(contents: Contents) -> str:
    """Return the contents as JSON that no reader of HTML takes for the end of the script."""
    text = json.dumps(
        contents.as_json(), ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    return text.replace("<", "\\u003c").replace(">", "\\u003e")


def about(contents: Contents) -> list[str]:
    """Return sentences on what the numbers mean and how exact they are."""
    lines = [
        f"The scores are those of the learner {contents.learner!r} of the run, for somebody who "
        "gives these ratings now. All is computed in double precision.",
        _precision(contents),
        _certainty(contents),
        "“Your rating would tell most” is the title after whose rating the scores of all others "
        "would be surest, among the 200 most rated.",
        "The titles behind “because of” are the rated ones that move a score most, with how far.",
    ]
    if contents.choices is not None:
        lines.append(
            "“What you would choose” adds to the score how likely you are to choose a title at "
            "all, as the titles tell that you rated: the order of the run's own lists."
        )
    if contents.left_out:
        lines.append(
            f"The run has {contents.left_out:,} more {contents.noun}: the page has the most rated."
        )
    if contents.scale.made:
        parts = len(contents.scale.levels)
        lines.append(
            f"The rating scale has no levels: for ranks it is cut into {parts} equal parts."
        )
    return lines


def _precision(contents: Contents) -> str:
    parts = [part for part in (contents.features, contents.prior) if part is not None]
    text = (
        "Features are numbers of 16 bits: they differ from the run's by at most "
        f"{max(part.error for part in parts):.1g}"
    )
    if contents.uncertainty is None:
        return f"{text}."
    return (
        f"{text}. That moved no score of the {contents.uncertainty.ratings:,} measured ones by "
        f"more than {contents.uncertainty.score_error:.1g}."
    )


def _certainty(contents: Contents) -> str:
    found = contents.uncertainty
    if found is None:
        return "The run held no ratings out, so the page has no intervals."
    return (
        "An interval holds the score with 90 % if the model is right. The noise of ratings in it, "
        f"a standard deviation of {found.noise**0.5:.2f}, is measured on {found.ratings:,} "
        f"held-out ratings of {found.users:,} users."
    )


def _script() -> str:
    return "\n".join(['"use strict";', *(_asset(f"{name}.js") for name in SCRIPTS)])


def _asset(name: str) -> str:
    return (files("spark_rank.demo") / "assets" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"


def _escaped(text: str) -> str:
    return escape(visible(redact(text)))
