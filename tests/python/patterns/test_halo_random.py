"""Cartesian halos by their closed form, and random exchanges within their bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earlybird.data.errors import InputError
from earlybird.patterns.halo import halo_exchange
from earlybird.patterns.random_exchange import random_exchange

SIDES = st.tuples(*[st.integers(1, 4)] * 3)


@given(grid=SIDES, cells=st.tuples(*[st.integers(2, 5)] * 3), width=st.integers(1, 2))
def test_open_six_point_halo_sends_each_inner_face_both_methods(grid, cells, width):
    pattern = halo_exchange(grid, cells, halo_width=width, bytes_per_cell=3)
    (px, py, pz), (nx, ny, nz) = grid, cells
    faces = {0: (px - 1) * py * pz, 1: px * (py - 1) * pz, 2: px * py * (pz - 1)}
    areas = {0: ny * nz, 1: nx * nz, 2: nx * ny}
    assert pattern.num_messages == 2 * sum(faces.values())
    assert pattern.total_bytes == 2 * 3 * width * sum(faces[axis] * areas[axis] for axis in range(3))


@given(grid=SIDES, neighbours=st.sampled_from([6, 26]), periodic=st.booleans())
def test_what_a_rank_sends_comes_back_in_the_same_sizes(grid, neighbours, periodic):
    pattern = halo_exchange(grid, (4, 5, 6), neighbours=neighbours, periodic=periodic)
    there = sorted(zip(pattern.src, pattern.dst, pattern.bytes, strict=True))
    back = sorted(zip(pattern.dst, pattern.src, pattern.bytes, strict=True))
    assert there == back
    assert (np.diff(pattern.src) >= 0).all()


def test_periodic_halo_gives_every_rank_every_neighbour():
    for neighbours in (6, 26):
        pattern = halo_exchange((3, 3, 3), (4, 4, 4), neighbours=neighbours, periodic=True)
        assert np.bincount(pattern.src).tolist() == [neighbours] * 27
        pairs = set(zip(pattern.src.tolist(), pattern.dst.tolist(), strict=True))
        assert len(pairs) == 27 * neighbours


def test_faces_edges_and_corners_have_their_sizes():
    pattern = halo_exchange((2, 2, 2), (4, 5, 6), halo_width=2, bytes_per_cell=1, neighbours=26)
    from_rank_0 = {dst: size for src, dst, size in pattern.triples().tolist() if src == 0}
    # Rank 1 lies along x, 2 along y, 4 along z.
    assert from_rank_0 == {1: 2 * 30, 2: 2 * 24, 4: 2 * 20, 3: 4 * 6, 5: 4 * 5, 6: 4 * 4, 7: 8}


def test_the_rank_order_is_that_of_mpi_cart_create_if_z_is_fastest():
    grid, cells = (2, 3, 4), (4, 5, 6)
    # MPI_Cart_create is row-major: the last dimension varies fastest (MPI 4.1, section 8.2).
    cart = np.arange(24).reshape(grid)
    pattern = halo_exchange(grid, cells, rank_order="z-fastest", bytes_per_cell=1)
    sizes = {(src, dst): size for src, dst, size in pattern.triples().tolist()}
    for axis, area in enumerate((5 * 6, 4 * 6, 4 * 5)):
        first = np.take(cart, range(grid[axis] - 1), axis).ravel().tolist()
        second = np.take(cart, range(1, grid[axis]), axis).ravel().tolist()
        assert {sizes.pop(pair) for pair in zip(first, second, strict=True)} == {area}
        assert {sizes.pop(pair) for pair in zip(second, first, strict=True)} == {area}
    assert not sizes
    # It is the other order with the axes reversed.
    reversed_axes = halo_exchange(grid[::-1], cells[::-1], neighbours=26, periodic=True)
    same = halo_exchange(grid, cells, neighbours=26, periodic=True, rank_order="z-fastest")
    assert sorted(same.triples().tolist()) == sorted(reversed_axes.triples().tolist())


def test_two_ranks_that_meet_on_both_sides_exchange_two_messages():
    pattern = halo_exchange((2, 1, 1), (4, 4, 4), periodic=True)
    assert pattern.triples().tolist() == [[0, 1, 128], [0, 1, 128], [1, 0, 128], [1, 0, 128]]


def test_one_rank_alone_sends_nothing():
    assert halo_exchange((1, 1, 1), (4, 4, 4), periodic=True, neighbours=26).num_messages == 0


def test_flat_grid_may_have_a_halo_wider_than_its_thickness():
    assert halo_exchange((2, 2, 1), (8, 8, 1), halo_width=2).num_messages == 8
    pattern = halo_exchange((2, 1, 1), (8, 1, 8), halo_width=2, bytes_per_cell=1, periodic=True)
    assert pattern.bytes.tolist() == [2 * 1 * 8] * 4


@pytest.mark.parametrize("neighbours", [6, 26])
@pytest.mark.parametrize("periodic", [False, True])
@given(grid=SIDES)
def test_the_messages_that_must_fit_are_those_that_are_made(neighbours, periodic, grid):
    options = {"neighbours": neighbours, "periodic": periodic}
    num_messages = halo_exchange(grid, (4, 4, 4), **options).num_messages
    halo_exchange(grid, (4, 4, 4), **options, available_bytes=110 * num_messages)
    if num_messages:
        with pytest.raises(
            InputError, match=f"would have {num_messages} messages, .*; {num_messages - 1} fit"
        ):
            halo_exchange(grid, (4, 4, 4), **options, available_bytes=110 * num_messages - 1)


@pytest.mark.parametrize(
    ("arguments", "options", "says"),
    [
        (
            ((1, 1, 20), (4, 4, 4)),
            {"neighbours": 26, "available_bytes": 1000},
            "38 messages, .*; 9 fit; give a smaller process grid, or 6 neighbours$",
        ),
        (((2, 1, 1), (4, 4, 4)), {"available_bytes": 100}, "0 fit; give a smaller process grid$"),
        (((0, 1, 1), (4, 4, 4)), {}, "process grid is 0"),
        (((2, 1, 1), (4, 0, 4)), {}, "box is 0"),
        (((2, 1, 1), (4, 4, 4)), {"halo_width": 5}, "halo width is 5; .*between 1 and 4"),
        (
            ((2, 1, 1), (8, 1, 8)),
            {"halo_width": 2, "periodic": True, "neighbours": 26},
            "halo width is 2; .*between 1 and 1",
        ),
        (((2, 1, 1), (4, 4, 4)), {"halo_width": 0}, "halo width is 0"),
        (((2, 1, 1), (4, 4, 4)), {"bytes_per_cell": -8}, "bytes per cell is -8"),
        (((2, 1, 1), (4, 4, 4)), {"neighbours": 8}, "neighbours is 8; give 6"),
        (((1000, 1000, 1000), (4, 4, 4)), {}, "ranks in the process grid is 1000000000"),
        (((2, 1, 1), (10**9, 10**9, 10**9)), {}, "would move"),
    ],
)
def test_impossible_halo_is_refused(arguments, options, says):
    with pytest.raises(InputError, match=says):
        halo_exchange(*arguments, **options)


@given(
    num_ranks=st.integers(2, 9),
    num_messages=st.integers(0, 50),
    smallest=st.integers(1, 100),
    more=st.integers(0, 10**6),
    distribution=st.sampled_from(["uniform", "log-uniform"]),
    seed=st.integers(0, 2**40),
)
def test_random_messages_stay_within_their_bounds(
    num_ranks, num_messages, smallest, more, distribution, seed
):
    options = {"min_size_bytes": smallest, "max_size_bytes": smallest + more, "distribution": distribution}
    pattern = random_exchange(num_ranks, num_messages, seed=seed, **options)
    assert pattern.num_messages == num_messages
    assert pattern.num_ranks_named <= num_ranks
    assert (pattern.src != pattern.dst).all()
    assert ((pattern.bytes >= smallest) & (pattern.bytes <= smallest + more)).all()
    assert random_exchange(num_ranks, num_messages, seed=seed, **options).sha256() == pattern.sha256()


def test_every_pair_of_ranks_is_equally_likely():
    pattern = random_exchange(4, 12_000, seed=1)
    counts = np.bincount(pattern.src * 4 + pattern.dst, minlength=16).reshape(4, 4)
    others = counts[~np.eye(4, dtype=bool)]
    assert counts.trace() == 0
    assert abs(others - 1000).max() < 200


def test_log_uniform_sizes_fall_evenly_into_doublings():
    sizes = random_exchange(2, 10_000, min_size_bytes=16, max_size_bytes=(1 << 14) - 1, seed=1).bytes
    per_doubling = np.bincount(np.log2(sizes).astype(int))[4:]
    assert len(per_doubling) == 10
    assert abs(per_doubling - 1000).max() < 200


@pytest.mark.parametrize(
    ("arguments", "options", "says"),
    [
        ((0, 1), {}, "ranks is 0"),
        ((1, 1), {}, "no other rank to send to"),
        ((2, -1), {}, "messages is -1"),
        ((2, 10**12), {}, "1000000000000 messages"),
        ((2, 1), {"min_size_bytes": 0}, "log-uniform distribution is 0"),
        ((2, 1), {"min_size_bytes": 9, "max_size_bytes": 8}, "largest size is 8; .* 9 or more"),
        ((2, 3), {"max_size_bytes": 2**61}, "would move"),
        ((2, 1), {"distribution": "normal"}, "log-uniform, uniform"),
        ((2, 1), {"seed": -1}, "seed is -1"),
    ],
)
def test_impossible_random_exchange_is_refused(arguments, options, says):
    with pytest.raises(InputError, match=says):
        random_exchange(*arguments, **options)
