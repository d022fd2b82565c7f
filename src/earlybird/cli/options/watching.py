"""The options of commands that watch the ranks that they start."""

from typing import Annotated

import typer

from earlybird.cli.options.values import above_zero

StuckOption = Annotated[
    float | None,
    typer.Option(
        metavar="DURATION",
        help="When no rank has sent, completed or entered anything for so long, print who waits for "
        "whom, as `earlybird where` does, and go on.",
    ),
    above_zero("60s"),
]
StopOption = Annotated[
    bool,
    typer.Option(
        "--stop",
        help="Then end the command with status 1 if it can never get on: after a deadlock, or a message "
        "or a collective that cannot come; never because ranks compute.",
    ),
]
SynchronousOption = Annotated[
    bool,
    typer.Option(
        "--synchronous",
        help="Let standard sends complete only when they are received: finds programs that hang once "
        "the MPI does not buffer their messages.",
    ),
]
