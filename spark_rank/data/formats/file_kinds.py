"""Recognises files that are not readable text by their first bytes: archives, spreadsheets, ….

Every kind has words for what it is and for what to do.
"""

from __future__ import annotations

import re
import shlex

PARQUET = b"PAR1"
# compressed files are read if their names have the ending
PACKED = {b"\x1f\x8b": ("gzip", ".gz"), b"BZh": ("bzip2", ".bz2"),
          b"\x28\xb5\x2f\xfd": ("Zstandard", ".zst")}  # fmt: skip
_SAVE = "save it as CSV (UTF-8) and name that file"
_LOAD = "convert it to CSV or Parquet"
_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel or Office file (xls)", _SAVE),
    (b"\xfd7zXZ\x00", "an xz archive", "unpack it: xz -d {path}"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it: 7z x {path}"),
    (b"Rar!\x1a\x07", "a rar archive", "unpack it: unrar x {path}"),
    (b"ORC", "an ORC file", _LOAD),
    (b"Obj\x01", "an Avro file", _LOAD),
    (b"ARROW1", "an Arrow (Feather) file", _LOAD),
    (b"FEA1", "a Feather file", _LOAD),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", _LOAD),
    (b"\x93NUMPY", "a NumPy array", _LOAD),
    (b"SQLite format 3\x00", "an SQLite database", _LOAD),
    (b"%PDF-", "a PDF document", _LOAD),
    (b"\x80\x02", "a pickle of Python", _LOAD),
    (b"\x80\x03", "a pickle of Python", _LOAD),
    (b"\x80\x04\x95", "a pickle of Python", _LOAD),
    (b"\x80\x05\x95", "a pickle of Python", _LOAD),
)
_UTF32 = (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_HTML = (b"<!doctype html", b"<html")
_JSON = re.compile(rb'\{\s*"|\[\s*[{\[]')
# text may begin with the letters of a magic number, but has none of these bytes
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1f]")


def refusal(path: str, head: bytes) -> str | None:
    """Return what a file is and what to do, None for text and Parquet.

    `head` is its first bytes, before any decompression.
    """
    if head.startswith(PARQUET):
        return None
    shown = shlex.quote(path.removeprefix("file:"))
    for look in (_packed, _zipped, _encoded, _marked_up):
        if (said := look(path, shown, head)) is not None:
            return f"{path}: {said}"
    for magic, words, remedy in _MAGIC:
        if head.startswith(magic) and (words == "a PDF document" or _BINARY.search(head)):
            return f"{path}: is {words}: {remedy.format(path=shown)}"
    if head[257:262] == b"ustar":
        return f"{path}: is a tar archive: unpack it: tar -xf {shown}"
    return None


def _packed(path: str, shown: str, head: bytes) -> str | None:
    for magic, (name, ending) in PACKED.items():
        if head.startswith(magic) and not path.endswith(ending):
            return (
                f"is compressed by {name}, but its name does not end with {ending}: rename it: "
                f"mv {shown} {shown}{ending}"
            )
        if path.endswith(ending) and head and not head.startswith(magic):
            return f"is named {ending} but is not compressed by {name}: rename it without {ending}"
    return None


def _zipped(path: str, shown: str, head: bytes) -> str | None:
    if not head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return None
    if path.lower().endswith((".xlsx", ".xlsm", ".ods")) or _is_workbook(head):
        return f"is a spreadsheet (Excel or OpenDocument): {_SAVE}"
    return f"is a zip archive: unpack it: unzip {shown}"


def _is_workbook(head: bytes) -> bool:
    return any(name in head for name in (b"[Content_Types].xml", b"xl/", b"opendocument.spread"))


def _encoded(path: str, shown: str, head: bytes) -> str | None:
    if head.startswith(_UTF32):
        return f"is UTF-32 text: convert it: iconv -f UTF-32 -t UTF-8 {shown} > ratings.txt"
    wide = head[:512]
    # without a byte order mark, every other byte of plain text is zero
    zeros = [wide[start::2].count(0) * 4 > len(wide) for start in (0, 1)]
    if head.startswith(_UTF16) or (len(wide) > 3 and zeros[0] != zeros[1]):
        order = "" if head.startswith(_UTF16) else "BE" if zeros[0] else "LE"
        return f"is UTF-16 text: convert it: iconv -f UTF-16{order} -t UTF-8 {shown} > ratings.txt"
    return None


def _marked_up(path: str, shown: str, head: bytes) -> str | None:
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text[:20].lower().startswith(_HTML):
        return "is a web page, perhaps of a refused download: download the data set again"
    if _JSON.match(text):
        return f"is JSON: {_LOAD}"
    return None
