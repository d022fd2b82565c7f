"""`--nodes` and `--sockets`: instead of `--layout`, nodes with equally many of the ranks that a pattern
names."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from earlybird.cli.options.shared import LAYOUT_HELP
from earlybird.data.errors import InputError
from earlybird.data.layout import Layout, is_shape, parse_layout

if TYPE_CHECKING:
    from earlybird.data.pattern import Pattern
    from earlybird.data.profile import Profile

SocketsOption = Annotated[
    int | None,
    typer.Option(min=1, help="Sockets of a node of --nodes.  [default: as the profile's machine]"),
]


@dataclass(frozen=True)
class PatternPlace:
    """The options that place the ranks of a pattern: one of `layout` and `nodes` is given."""

    layout: Annotated[str | None, typer.Option(help=f"{LAYOUT_HELP}  Or give --nodes.")] = None
    nodes: Annotated[
        str | None,
        typer.Option(help="Instead of --layout: the number of nodes, which have equally many ranks each."),
    ] = None
    sockets: SocketsOption = None

    def check(self) -> None:
        """Raise InputError, before the pattern is read, unless one option is given and --nodes is one
        number."""
        check_nodes(self.layout, self.nodes, self.sockets)
        if self.layout is None and self.nodes is None:
            raise InputError(
                "the nodes of the ranks are missing; give --layout NODESxSOCKETSxRANKS, ranks per socket, "
                "such as 4x2x16, or their number, such as --nodes 4"
            )
        from earlybird.predict.equal_nodes import node_numbers

        if self.nodes is not None and len(numbers := node_numbers(self.nodes)) > 1:
            raise InputError(
                f"--nodes is {self.nodes!r}, but advice is for one number of nodes; give one, such as "
                f"{numbers[0]}; earlybird predict --nodes {','.join(map(str, numbers))} compares them"
            )

    def of(self, pattern: "Pattern", profile: "Profile", map_by: str = "core") -> Layout:
        """Return the layout; raise InputError."""
        if self.nodes is None:
            return parse_layout(str(self.layout), map_by)
        from earlybird.predict.equal_nodes import equal_nodes, node_numbers

        return equal_nodes(pattern, node_numbers(self.nodes)[0], self.sockets, profile, map_by)


@dataclass(frozen=True)
class EqualNodes(PatternPlace):
    """Nodes of equal shape, on which the ranks of a pattern are to be placed."""

    layout: Annotated[
        str | None,
        typer.Option(help="Nodes x sockets x ranks of a socket, such as 4x2x16.  Or give --nodes."),
    ] = None

    def check(self) -> None:
        super().check()
        if self.layout is not None and not is_shape(self.layout):
            raise InputError(
                f"--layout is {self.layout!r}, but ranks are placed on nodes of equal shape; give "
                "NODESxSOCKETSxRANKS, ranks per socket, such as 4x2x16"
            )


def check_nodes(layout: str | None, nodes: str | None, sockets: int | None) -> None:
    """Raise InputError for --layout and --nodes together, and for sockets without nodes."""
    if sockets is not None and nodes is None:
        raise InputError(f"--sockets {sockets} is for --nodes, which is missing; give both, or a --layout")
    if nodes is not None and layout is not None:
        raise InputError("--nodes and --layout are both given; give one of them")
