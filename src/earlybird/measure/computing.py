"""How long threads compute between messages, and its noise: the options that several suites share."""

from dataclasses import dataclass
from typing import Any

from earlybird.data import units
from earlybird.data.errors import InputError
from earlybird.data.methods import NO_NOISE, NOISE_MODELS
from earlybird.measure.groups import Options
from earlybird.measure.options import SuiteOption, listed

# A longer computation is a slip of units: a bare 10 is 10 s.
_LONGEST_S = 10.0


def _computation(text: str) -> float:
    compute_s = units.parse_duration(text, "--compute")
    if compute_s > _LONGEST_S:
        raise InputError(
            f"--compute has {text}, which is {compute_s:g} s; give 0 to {_LONGEST_S:g}s, such as 10ms"
        )
    return compute_s


def _noise_share(text: str) -> float:
    """Return 0.04 for `4`."""
    try:
        percent = units.number_in(text)
    except ValueError:
        percent = -1.0
    if not 0 <= percent <= 100:
        raise InputError(f"--noise-percent has {text!r}; give 0 to 100, such as 4")
    # 7 / 100 is 0.07, and 7 * 0.01 is not.
    return percent / 100


# A suite with other defaults makes its own of these with `dataclasses.replace`.
COMPUTE = SuiteOption(
    "compute", "How long each thread computes, such as 0,1ms,10ms.  [default: 0]",
    "computes_s", listed(_computation),
)  # fmt: skip
NOISE = SuiteOption(
    "noise",
    "Noise of the computation: none; single: one thread takes --noise-percent longer; uniform: each by a "
    f"random part of that; gaussian: that is the standard deviation.  [default: {NO_NOISE}]",
    "noise_models", choices=NOISE_MODELS,
)  # fmt: skip
NOISE_PERCENT = SuiteOption(
    "noise-percent", "Strength of the noise in percent of the computation, such as 0,4,10.  [default: 4]",
    "noise_shares", listed(_noise_share),
)  # fmt: skip
_DEFAULT_SHARE = 0.04  # that of Temucin et al. 2022, of 0, 4 and 10 %


@dataclass(frozen=True)
class Computation:
    """The computation of each thread: its duration, the noise model and the strength of the noise."""

    compute_s: float
    noise: str
    noise_share: float

    @property
    def longest_s(self) -> float:
        """The longest time of one thread; a thread of the model gaussian rarely takes longer."""
        return self.compute_s * (1 + (2 if self.noise == "gaussian" else 1) * self.noise_share)

    def config(self) -> dict[str, Any]:
        """Return the keys of a point, which native/kernels/computing/noise.cpp reads."""
        return {"compute_s": self.compute_s, "noise": self.noise, "noise_share": self.noise_share}


def computations(options: Options) -> tuple[Computation, ...]:
    """Return every combination that the options name, each once; there is no noise without a computation, a
    model or a strength."""
    if options.noise_shares is not None and options.noise_models is None:
        raise InputError(
            "--noise-percent is the strength of a noise and --noise is missing; give --noise single, uniform "
            "or gaussian, or omit --noise-percent"
        )
    if any(model != NO_NOISE for model in options.noise_models or ()) and not any(options.computes_s or ()):
        raise InputError(
            "--noise changes the time of a computation and --compute is 0; give --compute, such as 1ms, or "
            "omit --noise"
        )
    found = []
    for compute_s in options.computes_s or (0.0,):
        for model in options.noise_models or (NO_NOISE,):
            for share in options.noise_shares or (_DEFAULT_SHARE,):
                noisy = compute_s > 0 and share > 0 and model != NO_NOISE
                found.append(Computation(compute_s, *((model, share) if noisy else (NO_NOISE, 0.0))))
    return tuple(dict.fromkeys(found))
