"""Prints results on stdout as CSV or JSON."""

import csv
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from earlybird.data.errors import InputError
from earlybird.data.plain_text import csv_cell


class Format(StrEnum):
    """The values of `--format`; `--json` is short for `--format json`."""

    table = "table"
    csv = "csv"
    json = "json"


def print_json(value: Any) -> None:
    """Print JSON on stdout, in ASCII; raise InputError for values that are not numbers."""
    try:
        text = json.dumps(value, indent=1, allow_nan=False)
    except ValueError:
        raise InputError(
            "a result is beyond the numbers that a computer calculates with; the costs or sizes given are "
            "too large or too small: give those of a machine that exists"
        ) from None
    print(text)


def print_csv(records: Iterable[Mapping[str, Any]], header: Sequence[str] = ()) -> None:
    """Print the values of `records` in the columns `header`, by default all of their keys."""
    if not header:
        records = list(records)
        header = list(dict.fromkeys(key for record in records for key in record))
    writer = csv.DictWriter(sys.stdout, header, extrasaction="ignore", lineterminator="\n")
    writer.writerow({name: csv_cell(name) for name in header})
    for record in records:
        writer.writerow({key: csv_cell(value) for key, value in record.items()})


def print_data(
    format: str, value: Any, records: Iterable[Mapping[str, Any]], header: Sequence[str] = ()
) -> bool:
    """Print `value` as JSON, or `records` as CSV, if that is the format; otherwise return False."""
    if format == Format.json:
        print_json(value)
    elif format == Format.csv:
        print_csv(records, header)
    return format in (Format.json, Format.csv)
