"""`make bench`: runs every comparison and prints its table."""

import signal
import sys
from collections.abc import Callable

from bench import (
    aggregation_advice,
    check_faults,
    cluster_exchanges,
    cluster_links,
    collective_accuracy,
    collective_advice,
    command_times,
    compare_power,
    large_predictions,
    layout_advice,
    many_cores,
    motif_styles,
    other_benchmarks,
    paper_tables,
    partitioned_calls,
    partitioned_costs,
    partitioned_grid,
    partitioned_learning,
    partitioned_link,
    partitioned_own,
    partitioned_policy,
    partitioned_progress,
    partitioned_regret,
    partitioned_scale,
    partitioned_soak,
    pipeline_advice,
    predictor,
    predictor_growth,
    program_advice,
    recorder_cost,
    recorder_kills,
    session_kills,
    simgrid_exchanges,
    simgrid_replay,
    simulated_programs,
    simulated_windows,
    slurm_cluster,
    smpi_programs,
    stuck_alarms,
    stuck_ranks,
    stuck_suites,
    temucin_suite,
)
from earlybird.data.errors import InputError

COMPARISONS: dict[str, Callable[..., int]] = {
    "other-benchmarks": other_benchmarks.main,
    "cluster-links": cluster_links.main,
    "cluster-exchanges": cluster_exchanges.main,
    "simgrid-exchanges": simgrid_exchanges.main,
    "simgrid-replay": simgrid_replay.main,
    "partitioned-calls": partitioned_calls.main,
    "partitioned-costs": partitioned_costs.main,
    "partitioned-grid": partitioned_grid.main,
    "partitioned-grid-cluster": partitioned_grid.main_on_cluster,
    "partitioned-learning": partitioned_learning.main,
    "partitioned-link": partitioned_link.main,
    "partitioned-policy": partitioned_policy.main,
    "partitioned-regret": partitioned_regret.main,
    "partitioned-scale": partitioned_scale.main,
    "partitioned-soak": partitioned_soak.main,
    "partitioned-progress": partitioned_progress.main,
    "partitioned-own": partitioned_own.main,
    "stuck-suites": stuck_suites.main,
    "stuck-alarms": stuck_alarms.main,
    "stuck-ranks": stuck_ranks.main,
    "temucin-suite": temucin_suite.main,
    "many-cores": many_cores.main,
    "motif-styles": motif_styles.main,
    "simulated-programs": simulated_programs.main,
    "smpi-programs": smpi_programs.main,
    "simulated-windows": simulated_windows.main,
    "program-advice": program_advice.main,
    "recorder-cost": recorder_cost.main,
    "recorder-kills": recorder_kills.main,
    "session-kills": session_kills.main,
    "command-times": command_times.main,
    "pipeline-advice": pipeline_advice.main,
    "predictor": predictor.main,
    "predictor-growth": predictor_growth.main,
    "large-predictions": large_predictions.main,
    "paper-tables": paper_tables.main,
    "layout-advice": layout_advice.main,
    "aggregation-advice": aggregation_advice.main,
    "compare-power": compare_power.main,
    "check-faults": check_faults.main,
    "slurm-cluster": slurm_cluster.main,
    "collective-accuracy": collective_accuracy.main,
    "collective-advice": collective_advice.main,
}
# Those with their own arguments, see --help.
WITH_OPTIONS = (
    "command-times", "many-cores", "motif-styles", "partitioned-calls", "partitioned-costs",
    "partitioned-grid", "partitioned-grid-cluster", "partitioned-learning", "partitioned-policy",
    "partitioned-regret", "partitioned-scale", "partitioned-soak",
    "pipeline-advice", "collective-accuracy", "collective-advice", "program-advice", "simulated-programs",
    "smpi-programs",
    "recorder-cost", "recorder-kills", "session-kills", "stuck-suites", "stuck-alarms", "stuck-ranks",
    "temucin-suite", "layout-advice", "aggregation-advice",
    "cluster-exchanges", "simgrid-exchanges", "paper-tables", "other-benchmarks", "check-faults",
    "predictor-growth", "large-predictions", "slurm-cluster", "simulated-windows", "simgrid-replay",
)  # fmt: skip


def run(arguments: list[str]) -> int:
    """Run the comparisons named first, or all; return the worst exit status. Options, and other words after
    a comparison with options, go to a lone one."""
    has_options = bool(arguments) and arguments[0] in WITH_OPTIONS
    of_one = (
        k for k, word in enumerate(arguments)
        if word.startswith("-") or (k == 1 and has_options and word not in COMPARISONS)
    )  # fmt: skip
    first = next(of_one, len(arguments))
    names, options = arguments[:first], arguments[first:]
    unknown = [name for name in names if name not in COMPARISONS]
    if unknown:
        print(f"there is no comparison {unknown[0]!r}; there are {', '.join(COMPARISONS)}", file=sys.stderr)
        return 2
    if options:
        if len(names) != 1 or names[0] not in WITH_OPTIONS:
            print(
                f"{options[0]} goes with one comparison that has options ({', '.join(WITH_OPTIONS)})",
                file=sys.stderr,
            )
            return 2
        return _run_one(names[0], options)
    return max(_run_one(name, []) for name in names or COMPARISONS)


def _run_one(name: str, options: list[str]) -> int:
    try:
        return COMPARISONS[name](options) if options else COMPARISONS[name]()
    except InputError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    # Also in the background, where Ctrl-C is ignored: what was measured is printed, no virtual cluster stays.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:
        print("bench: interrupted", file=sys.stderr)
        sys.exit(130)
