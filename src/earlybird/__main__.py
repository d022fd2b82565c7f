"""Runs the command line: `earlybird` and `python -m earlybird`."""

import sys


def run() -> None:
    """Run the command line, as the entry point of the console script.

    Ctrl-C ends a command in one line also while its modules are imported, before it has its own handlers. So
    this module, and the package around it, import next to nothing.
    """
    try:
        from earlybird.cli.main import run as run_command

        run_command()
    except KeyboardInterrupt:
        sys.stderr.write("earlybird: interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    run()
