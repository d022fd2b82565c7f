"""Prints advice on any operation: warnings first, then JSON, CSV or the command's own table."""

from collections.abc import Callable, Sequence

from earlybird.cli.common import Format, note, print_csv, print_json
from earlybird.data.advice import Advice


def show_advice(
    advice: Advice, format: Format, columns: Sequence[str], print_table: Callable[[Advice], None]
) -> None:
    """`columns` are the CSV columns of each alternative; `print_table` prints the format `table`."""
    for reservation in advice.notes:
        note(f"warning: {reservation}")
    if format is Format.json:
        print_json(advice.to_json())
    elif format is Format.csv:
        rows = [one.to_json() for one in advice.ranked]
        print_csv(columns, [[row.get(name) for name in columns] for row in rows])
    else:
        print_table(advice)
