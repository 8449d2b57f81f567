"""Files that are not text are refused in one line, with a remedy."""

from __future__ import annotations

import bz2
import gzip
import io
import re
import tarfile
import zipfile
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rank.data.formats.file_kinds import refusal

TEXT = "user,item,rating\n1,2,3\n"


def packed(*names: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in names:
            archive.writestr(name, TEXT)
    return stream.getvalue()


def taped() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("ratings.csv"))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "head", "words"),
    [
        ("r.zip", packed("ratings.csv"), "is a zip archive: unpack it: unzip /d/r.zip"),
        ("r.xlsx", packed("xl/workbook.xml"), "is a spreadsheet .*save it as CSV"),
        ("r.csv", packed("[Content_Types].xml", "xl/a.xml"), "is a spreadsheet .*save it as CSV"),
        ("r.csv", TEXT.encode("utf-16"), "is UTF-16 text: convert it: iconv -f UTF-16 -t UTF-8"),
        ("r.csv", TEXT.encode("utf-16-le"), "is UTF-16 text: .*-f UTF-16LE"),
        ("r.csv", TEXT.encode("utf-16-be"), "is UTF-16 text: .*-f UTF-16BE"),
        ("r.csv", TEXT.encode("utf-32"), "is UTF-32 text"),
        ("r.csv", gzip.compress(TEXT.encode()), r"is compressed by gzip.*mv /d/r.csv /d/r.csv.gz"),
        ("r.csv", bz2.compress(TEXT.encode()), "is compressed by bzip2"),
        ("r.csv.gz", TEXT.encode(), "is named .gz but is not compressed by gzip"),
        ("r.csv", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99), "is an old Excel"),
        ("r.csv", taped(), "is a tar archive"),
        ("r.csv", b"<!DOCTYPE html>\n<html>", "is a web page"),
        ("r.csv", b'{"user": 1}\n', "is JSON"),
        ("a b.zip", packed("x"), "unzip '/d/a b.zip'"),
    ],
    # the bytes of archives hold the time: they are no names for tests
    ids=map(str, count()),
)
def test_what_a_file_is_and_what_to_do(name: str, head: bytes, words: str) -> None:
    said = refusal(f"file:/d/{name}", head)
    assert said is not None
    assert said.isprintable()
    assert said.startswith(f"file:/d/{name}: ")
    assert re.search(words, said), said


@pytest.mark.parametrize(
    "head",
    [b"", b"1", TEXT.encode(), b"PAR1" + bytes(range(9)) * 99, b"ORCID,item,rating\n1,2,3\n",
     b"BX,a,3\n", "é,ü,3\n".encode("latin-1"), b"{guid},item,3\n", "\ufeffu,i,3".encode()],
)  # fmt: skip
def test_text_and_parquet_are_no_other_kind(head: bytes) -> None:
    assert refusal("file:/d/r.csv", head) is None


@given(st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=8, max_size=99))
def test_no_text_is_taken_for_something_else(text: str) -> None:
    if not text.lstrip("\ufeff \t").startswith(("{", "[", "<", "%PDF-", "BZh", "PK")):
        assert refusal("r.csv", text.encode()) is None
