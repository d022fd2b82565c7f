"""Prints the samples of a run for `measure`: a table for each kernel, JSON, CSV, or the columns of OSU."""

from collections.abc import Sequence

from earlybird.cli import collective_table, completion_table, msgrate_table, pipeline_table
from earlybird.cli.common import print_csv, print_json, print_table
from earlybird.data import units
from earlybird.data.run import Run, Sample, median_of_launches


def print_beside_paper(run: Run) -> None:
    """Print the paper's figures next to those of the run; the page and the formats csv and json have the
    rest."""
    from earlybird.report.gillis import brief_paper_tables
    from earlybird.report.material import collect
    from earlybird.report.pipelines import pipelines

    for table in brief_paper_tables(pipelines(collect([run.path]))):
        print(f"\n{table.caption}")
        print_table(table.header, table.rows)


def print_samples(run: Run, samples: Sequence[Sample], format: str) -> None:
    by_point: dict[tuple, list[Sample]] = {}
    collectives = [sample for sample in samples if sample.kernel == collective_table.KERNEL]
    for sample in samples:
        if sample.kernel != collective_table.KERNEL:
            by_point.setdefault(sample.point(), []).append(sample)
    rows = [_row(samples, by_point) for samples in by_point.values()]
    rows.sort(key=_order)
    rows += collective_table.collective_rows(run, collectives) if collectives else []
    collective_table.warn_of_contradictions(run, collectives)
    if format == "json":
        print_json({"run": str(run.path), "id": run.id, "points": rows})
    elif format == "csv":
        header = list(dict.fromkeys(key for row in rows for key in row))
        print_csv(header, [[_csv_cell(row.get(key, "")) for key in header] for row in rows])
    elif format == "osu":
        _show_osu(rows)
    else:
        for kernel in dict.fromkeys(row["kernel"] for row in rows):
            print(f"\n{kernel}")
            of_kernel = [row for row in rows if row["kernel"] == kernel]
            if kernel == "completion":
                cells = [completion_table.completion_cells(row, _state(row)) for row in of_kernel]
                print_table(completion_table.HEADER, cells)
                continue
            if kernel == "pipeline":
                print_table(*pipeline_table.pipeline_table(of_kernel, _state))
                for remark in pipeline_table.pipeline_remarks(of_kernel):
                    print(remark)
                continue
            if kernel == collective_table.KERNEL:
                cells = [collective_table.collective_cells(row, _state(row)) for row in of_kernel]
                print_table(collective_table.HEADER, cells, left=("algorithm", "tree"))
                for remark in collective_table.collective_remarks(of_kernel):
                    print(remark)
                continue
            if kernel == "msgrate":
                cells = [msgrate_table.msgrate_cells(row, _state(row)) for row in of_kernel]
                print_table(msgrate_table.HEADER, cells)
                for remark in msgrate_table.msgrate_remarks(run, of_kernel):
                    print(remark)
                continue
            print_table(
                ["level", "N", "size", "time", "launches from", "to", "received", "launches", "state"],
                [_cells(row) for row in of_kernel],
            )


def _csv_cell(value: object) -> object:
    return " ".join(map(str, value)) if isinstance(value, list) else value


def _order(row: dict) -> tuple:
    if row["kernel"] == "msgrate":
        return row["kernel"], *msgrate_table.msgrate_order(row)
    key = row["kernel"], row["level"], row["competitors"], row["size_bytes"]
    if row["kernel"] == "pipeline":
        return *key, *pipeline_table.pipeline_order(row)
    return *key, row.get("receiver", "")


def _row(samples: list[Sample], by_point: dict[tuple, list[Sample]]) -> dict:
    config = samples[0].config
    time_s = median_of_launches(samples)
    competitors = config.get("competitors", 1)
    medians = [sample.median_s() for sample in samples]
    return {
        "kernel": samples[0].kernel,
        "mpi": config["mpi"],
        "level": config["level"],
        "competitors": competitors,
        "size_bytes": config["size_bytes"],
        "time_s": time_s,
        "fastest_launch_s": min(medians),
        "slowest_launch_s": max(medians),
        **_figures(samples, by_point, competitors * config["size_bytes"] / time_s),
        "launches": len(samples),
        "converged": sum(sample.converged for sample in samples),
        "oversubscribed": any(sample.oversubscribed for sample in samples),
    }


def _figures(samples: list[Sample], by_point: dict, bandwidth_bytes_per_s: float) -> dict:
    """Values of a point besides its time; a time that contains the pause of a late receiver has no
    bandwidth."""
    if samples[0].kernel == "completion":
        return completion_table.completion_values(samples)
    if samples[0].kernel == "pipeline":
        kernel, quantity, _, config = samples[0].point()
        bulk = by_point.get((kernel, quantity, pipeline_table.BULK, config), [])
        return pipeline_table.pipeline_values(samples, bulk)
    if samples[0].kernel == "msgrate":
        kernel, quantity, _, config = samples[0].point()
        shared = by_point.get((kernel, quantity, msgrate_table.SHARED, config), [])
        return msgrate_table.msgrate_values(samples, shared)
    return {"bandwidth_bytes_per_s": bandwidth_bytes_per_s}


def _state(row: dict) -> str:
    noisy = row["launches"] - row["converged"]
    return (f"noisy in {noisy}" if noisy else "converged") + (
        ", oversubscribed" if row["oversubscribed"] else ""
    )


def _cells(row: dict) -> list[str]:
    return [
        row["level"],
        row["competitors"],
        units.format_bytes(row["size_bytes"]),
        units.format_seconds(row["time_s"]),
        units.format_seconds(row["fastest_launch_s"]),
        units.format_seconds(row["slowest_launch_s"]),
        units.format_bandwidth(row["bandwidth_bytes_per_s"]) if row["size_bytes"] else "",
        row["launches"],
        _state(row),
    ]


def _show_osu(rows: list[dict]) -> None:
    """Print the columns of the OSU benchmarks: latency in us for ping-pong, bandwidth in MB/s (1e6 B/s) for
    contention, the mean over ranks for collectives."""
    if rows[0]["kernel"] == collective_table.KERNEL:
        collective_table.print_osu(rows)
        return
    latency = rows[0]["kernel"] == "pingpong"
    print("# Size          Latency (us)" if latency else "# Size      Bandwidth (MB/s)")
    for row in rows:
        value = row["time_s"] * 1e6 if latency else row["bandwidth_bytes_per_s"] / 1e6
        print(f"{row['size_bytes']:<10d}{value:>18.2f}")
