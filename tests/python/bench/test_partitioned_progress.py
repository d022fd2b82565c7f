"""The share of segments that arrive before the last partition is ready, from the events of a trace."""

from bench.partitioned_progress import PARTITIONS, early_share


def event(name, ts, start, **args):
    return {"name": name, "ph": "i", "ts": ts, "args": {"start": start} | args}


def test_segments_of_the_first_start_and_of_the_last_partition_do_not_count():
    events = [{"name": "process_name", "ph": "M", "args": {"name": "rank 0 on host"}}]
    for start in (1, 2, 3):
        events += [event("pready", 10.0 * start + k, start) for k in (0, 5)]
        events.append(event("segment arrival", 10.0 * start + (9 if start == 3 else 1), start, segment=0))
        events.append(event("segment arrival", 10.0 * start + 1, start, segment=PARTITIONS - 1))
    assert early_share(events) == 0.5
