"""One sentence per question, generated from the material."""

from collections.abc import Sequence

import numpy as np

from earlybird.data import labels
from earlybird.data.layout import level_phrase
from earlybird.data.units import format_bandwidth, format_bytes, format_seconds
from earlybird.report import links, provenance
from earlybird.report.curves import Contention, Curve, Fit, large_message_protocols, rate
from earlybird.report.exchanges import Exchange
from earlybird.report.material import Material

FOLLOWS = 0.05  # relative deviation up to which a point counts as ideal scaling


def measured_sentence(material: Material) -> str:
    samples = [sample for run in material.runs for sample in run.samples]
    machines = {provenance.machine_text(run.machine): None for run in material.runs}
    mpis = {provenance.mpi_text(launch): None for run in material.runs for launch in run.launches}
    start = f"{labels.listed(list(mpis)) or 'MPI'} on {labels.listed(list(machines))}"
    if not samples:
        return labels.capital(f"{start}: the run holds no samples yet.")
    noisy = sum(not sample.converged for sample in samples)
    crowded = sum(sample.oversubscribed for sample in samples)
    state = "all converged" if not noisy else f"{len(samples) - noisy} converged and {noisy} stayed noisy"
    over = f", {crowded} with more {provenance.crowd_text(material.runs)} than cores" if crowded else ""
    limited = sum(len(links.limited_samples(run, material.patterns)) for run in material.runs)
    over += f" (of these, {limited} were limited by a link)" if limited else ""
    return labels.capital(f"{start}: {labels.counted(len(samples), 'sample')} measured, {state}{over}.")


def curve_sentences(curves: Sequence[Curve], lines: Sequence[Fit]) -> list[str]:
    """One sentence per level: time of the smallest message, bandwidth of the largest; measured or fitted."""
    texts_of: dict[str, list[str]] = {}
    for curve in curves:
        first, last = curve.points[0], curve.points[-1]
        texts_of.setdefault(curve.level, []).append(
            f"{curve.label} takes {format_seconds(first.median_s)} for a message of "
            f"{format_bytes(first.size_bytes)} and moves {format_bytes(last.size_bytes)} at "
            f"{format_bandwidth(rate(last.size_bytes, last.median_s))}"
        )
    for line in lines if not curves else []:
        first, last = line.segments[0], line.segments[-1]
        texts_of.setdefault(line.level, []).append(
            f"the fit of {line.label} has a latency of {format_seconds(first.latency_s)} for small messages"
            f" and a bandwidth of {format_bandwidth(last.bandwidth_bytes_per_s)} for large ones"
        )
    return [
        labels.capital(f"{level_phrase(level)}, {'; '.join(texts)}.") for level, texts in texts_of.items()
    ]


def contention_sentence(items: Sequence[Contention]) -> list[str]:
    """The point furthest from ideal scaling, over all flavours and levels, for large messages."""
    points = [
        (gap, bool(over), int(n), bandwidth, item)
        for item in large_message_protocols(items)
        for gap, over, n, bandwidth in zip(
            item.bandwidth_bytes_per_s / item.straight_line() - 1,
            item.oversubscribed,
            item.count,
            item.bandwidth_bytes_per_s,
            strict=True,
        )
        if len(item.count) > 1
    ]
    far = [point for point in points if abs(point[0]) >= FOLLOWS]
    if not points:
        return []
    if not far:
        return [
            "Received bandwidth follows ideal scaling, min(N*BW(1), BW_max), within "
            f"{labels.percent(FOLLOWS)} at every N."
        ]
    # A point with more ranks than cores also measures the scheduler: reported only if no other point is off.
    gap, over, n, bandwidth, item = max(far, key=lambda point: (not point[1], abs(point[0])))
    return [
        f"With {item.label}, {labels.counted(n, 'process', 'processes')} receiving at once "
        f"{level_phrase(item.level)} get {format_bandwidth(bandwidth)} in total, {labels.percent(abs(gap))} "
        f"{'less' if gap < 0 else 'more'} than ideal scaling"
        f"{' (with more ranks than cores)' if over else ''}."
    ]


def cost_sentence(item: Exchange) -> str:
    name, times = item.reference()
    slowest = int(np.argmax(times))
    others = np.delete(times, slowest)
    what = f"The exchange ({item.name})" if item.name else "The exchange"
    verb = "takes" if name == "measured" else f"takes, as predicted by the {name} model,"
    text = f"{what} {verb} {format_seconds(times[slowest])}, the time of rank {slowest}, the slowest"
    if len(others) and times[slowest] > 0:
        waiting = float(np.mean(times[slowest] - others))
        share = labels.percent(waiting / times[slowest])
        text += f"; the others wait {format_seconds(waiting)} for it on average ({share} of the exchange)"
    return text + "."


def accuracy_sentence(item: Exchange) -> str:
    best = item.best_first()[0]
    slowest = item.slowest_error[best]
    subject = f"{labels.capital(item.name)}: the" if item.name else "The"
    slowest_text = (
        "without error"
        if slowest == 0
        else (f"{labels.percent(abs(slowest))} too {'high' if slowest > 0 else 'low'}")
    )
    doubts = ["with more ranks than cores"] if item.oversubscribed and not item.link_limited else []
    doubts += [f"at a load of {item.load:.1f}"] if item.load is not None else []
    others = [f"error of {model}: {labels.percent(item.error[model])}" for model in item.best_first()[1:]]
    remarks = [f"measured {labels.listed(doubts)}"] * bool(doubts) + [", ".join(others)] * bool(others)
    remark = f" ({'; '.join(remarks)})" if remarks else ""
    return (
        f"{subject} {best} model is the most accurate: its total error is {labels.percent(item.error[best])}"
        f"{remark}, and it predicts the time of the slowest rank {slowest_text}."
    )
