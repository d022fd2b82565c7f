"""`make bench`: runs every comparison and prints its table."""

import sys

from bench import cluster_exchanges, cluster_links, imb_pingpong

COMPARISONS = {
    "imb-pingpong": imb_pingpong.main,
    "cluster-links": cluster_links.main,
    "cluster-exchanges": cluster_exchanges.main,
}


def run(names: list[str]) -> int:
    """Run the comparisons called `names`, or all; return the worst exit status."""
    unknown = [name for name in names if name not in COMPARISONS]
    if unknown:
        print(f"there is no comparison {unknown[0]!r}; there are {', '.join(COMPARISONS)}", file=sys.stderr)
        return 2
    return max(COMPARISONS[name]() for name in names or COMPARISONS)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
