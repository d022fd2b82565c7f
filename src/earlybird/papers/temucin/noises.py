"""The noises of computing times in Temucin et al. 2022: models, and shares of the computation."""

from earlybird.data.methods import GAUSSIAN_NOISE, SINGLE_NOISE, UNIFORM_NOISE

NOISES = (SINGLE_NOISE, UNIFORM_NOISE, GAUSSIAN_NOISE)
LESS_NOISE, MORE_NOISE = 0.04, 0.1
