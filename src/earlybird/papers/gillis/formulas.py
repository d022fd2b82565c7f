"""The examples of section 2.2.1 and appendix A.2 of Gillis et al. 2023, next to their equations here."""

from dataclasses import dataclass

from earlybird.models.pipelined import compute_rate_s_per_byte, delay_rate_s_per_byte, large_message_gain
from earlybird.papers.paper import Row

_THREADS, _BANDWIDTH = 8, 25e9
_FREQUENCY_HZ = 3.5e9
_US_PER_MB = 1e-12  # s/B
_DOUBLE = " at 50 GB/s; the rest of the paper has 25 GB/s"


@dataclass(frozen=True)
class _Algorithm:
    """An example of the appendix: arithmetic and communication intensity, noise and imbalance; the printed
    delay rates and gains by partitions per thread, and the bandwidth that the gains follow from."""

    section: str
    name: str
    ai: float
    ci: float
    epsilon: float
    delta: float
    printed: dict[int, tuple[str, str]]
    bandwidth_bytes_per_s: float
    note: str = ""

    def rows(self) -> list[Row]:
        rows = []
        mu = compute_rate_s_per_byte(self.ai, self.ci, _FREQUENCY_HZ)
        for theta, (rate, gain) in self.printed.items():
            gamma = delay_rate_s_per_byte(mu, theta, self.epsilon, self.delta)
            eta = large_message_gain(_THREADS, theta, gamma, self.bandwidth_bytes_per_s)
            named = f"{self.name}, {_THREADS} threads, theta={theta}"
            rows += [
                Row(self.section, f"delay rate, {named} (us/MB)", rate, f"{gamma / _US_PER_MB:.8g}",
                    "equation (9) at 3.5 GHz (not stated)"),
                Row(self.section, f"gain, {named}", gain, f"{eta:.4f}", f"equation (4){self.note}"),
            ]  # fmt: skip
        return rows


_ALGORITHMS = (
    _Algorithm("A.2.1", "FFT", 5.0, 1.0, 0.04, 0.0,
               {1: ("7.1428", "1.0228"), 2: ("187.1936", "1.4134"), 8: ("1263.67", "1.9748")}, _BANDWIDTH),
    _Algorithm("A.2.2", "stencil", 1 / 13, (66 / 64) ** 3 - 1, 0.04, 0.5,
               {1: ("15.3398", "1.1060"), 2: ("46.92385411", "1.1718"), 8: ("228.21310932", "1.2169")},
               2 * _BANDWIDTH, _DOUBLE),
)  # fmt: skip
# Partitions per thread, delay rate in us/MB, and the gain as printed.
_TEXT = ((1, 1.0, "1.003"), (1, 10.0, "1.032"), (8, 1000.0, "1.641"))


def formula_rows() -> list[Row]:
    """Return the printed examples: printed figures are truncated."""
    theory = large_message_gain(4, 1, 100 * _US_PER_MB, _BANDWIDTH)
    rows = [
        Row("figure 8", "theory, 4 threads, 100 us/MB, 25 GB/s", "2.67", f"{theory:.2f}", "equation (4)"),
        *(
            Row(
                "section 2.2.1",
                f"gain, {_THREADS} threads, theta={theta}, {rate:g} us/MB, 25 GB/s",
                printed,
                f"{large_message_gain(_THREADS, theta, rate * _US_PER_MB, _BANDWIDTH):.3f}",
                "equation (4)",
            )
            for theta, rate, printed in _TEXT
        ),
    ]
    return rows + [row for one in _ALGORITHMS for row in one.rows()]
