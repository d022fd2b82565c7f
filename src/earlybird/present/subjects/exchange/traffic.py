"""Prints what a pattern means on a layout."""

from earlybird.data import labels
from earlybird.data.layout import LEVELS, Layout
from earlybird.data.units import format_bytes
from earlybird.patterns.traffic import Traffic
from earlybird.present.core.table import text_table
from earlybird.present.render.data import print_data
from earlybird.present.render.terminal import print_line, print_table

_MAX_NODES = 64  # in the table; JSON and CSV have all


def print_traffic(found: Traffic, layout: Layout, format: str) -> None:
    total = found.total_bytes
    received = found.rank_bytes[found.rank_bytes > 0]
    nodes = [
        {"node": int(node)} | {f"{level}_bytes": count for level, count in zip(LEVELS, row, strict=True)}
        for node, row in zip(found.nodes, found.node_bytes.tolist(), strict=True)
    ]
    value = {
        "layout": layout.text,
        "ranks": layout.num_ranks,
        "messages": sum(found.messages.values()),
        "most_messages_received": int(found.rank_messages.max(initial=0)),
        "total_bytes": total,
        "most_bytes_received": int(received.max(initial=0)),
        "fewest_bytes_received": int(received.min()) if len(received) else 0,
        "levels": {
            level: {"messages": found.messages[level], "bytes": found.bytes[level],
                    "share": found.share(level)}
            for level in LEVELS
        },
        "nodes": nodes,
    }  # fmt: skip
    if print_data(format, value, nodes, ("node", *(f"{level}_bytes" for level in LEVELS))):
        return
    messages, most = (labels.counted(value[key], "message") for key in ("messages", "most_messages_received"))
    print_line(
        f"{messages}, {format_bytes(total)}, of {layout.num_ranks} ranks on {layout.text}; a rank receives "
        f"at most {most}, and if any, {format_bytes(value['fewest_bytes_received'])} to "
        f"{format_bytes(value['most_bytes_received'])}"
    )
    rows = [
        [labels.level(level), found.messages[level], format_bytes(found.bytes[level]),
         f"{100 * value['levels'][level]['share']:.1f} %"]
        for level in LEVELS
    ]  # fmt: skip
    print_table(text_table("", ["level", "messages", "volume", "share"], rows, left=["level"]))
    print_line()
    heads = ["node", *(labels.level(level) for level in LEVELS)]
    shown = found.node_bytes[:_MAX_NODES].tolist()
    of_nodes = [[row["node"], *map(format_bytes, of)] for row, of in zip(nodes, shown, strict=False)]
    print_table(text_table("", heads, of_nodes))
    if len(nodes) > _MAX_NODES:
        print_line(f"... {len(nodes) - _MAX_NODES} more; --format csv has all")
