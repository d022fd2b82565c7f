"""A sender and a receiver of partitioned transfers agree on every plan, and end, however they interleave."""

from dataclasses import replace

import pytest

from tests.core_library import compile_core
from tests.plan_agreement import NUM_CHANNELS, Core, Model, Scenario, Violation, iterations, made


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    return Core(compile_core(tmp_path_factory.mktemp("core")))


# The last user tag of 15 bits' canonical ones, and the first without.
CANONICAL_TAG, CHANNEL_TAG = 3, 1 << 14
BOTH = pytest.mark.parametrize("rendezvous", [False, True], ids=["eager", "rendezvous"])
TAGS = pytest.mark.parametrize("user_tag", [CANONICAL_TAG, CHANNEL_TAG], ids=["canonical", "channel"])
ORDERS = {
    "same order": ((0, 1), (0, 1)),
    "starts crossed": ((1, 0), (1, 0)),
    "waits crossed": ((0, 1), (1, 0)),
}

TEXTBOOK = Scenario(
    sender=made([*iterations(1), ("send",), ("sent",)], frees=(0, 1)),
    receiver=made([("start", 0), ("start", 1), ("receive",), ("wait", 0), ("wait", 1)], frees=(1, 0)),
    rendezvous=True,
)
RECYCLING = Scenario(
    sender=(
        ("make", 0), *iterations(1, [0]), ("free", 0), ("make", 1), *iterations(3, [1]), ("free", 1),
    ),
    receiver=made(
        [("start", 1), ("start", 0), ("wait", 0), ("free", 0), ("wait", 1), *iterations(2, [1])], frees=[1]
    ),
    rendezvous=False,
    user_tag=CHANNEL_TAG,
)  # fmt: skip
IN_TURN = replace(
    RECYCLING,
    receiver=(
        ("make", 0), *iterations(1, [0]), ("free", 0), ("make", 1), *iterations(3, [1]), ("free", 1),
    ),
)  # fmt: skip


@BOTH
@TAGS
@pytest.mark.parametrize("order", ORDERS)
def test_both_sides_agree_through_a_plan(core, user_tag, rendezvous, order):
    starts, waits = ORDERS[order]
    scenario = Scenario(
        sender=made(iterations(3), frees=(0, 1)),
        receiver=made(iterations(3, starts, waits), frees=(1, 0)),
        rendezvous=rendezvous,
        user_tag=user_tag,
    )
    assert Model(core, scenario).explore() > 400


@BOTH
@TAGS
@pytest.mark.parametrize("channel", range(NUM_CHANNELS))
def test_both_sides_agree_through_three_plans(core, user_tag, rendezvous, channel):
    scenario = Scenario(
        sender=made(iterations(9, [channel])),
        receiver=made(iterations(9, [channel])),
        rendezvous=rendezvous,
        user_tag=user_tag,
    )
    assert Model(core, scenario).explore() > 200


@TAGS
def test_two_transfers_that_run_far_ahead_agree_through_two_plans(core, user_tag):
    scenario = Scenario(made(iterations(8)), made(iterations(8, (1, 0))), rendezvous=False, user_tag=user_tag)
    assert Model(core, scenario).explore() > 2000


@BOTH
@TAGS
def test_the_textbook_program_ends(core, user_tag, rendezvous):
    Model(core, replace(TEXTBOOK, user_tag=user_tag, rendezvous=rendezvous)).explore()


@BOTH
@pytest.mark.parametrize("scenario", [RECYCLING, IN_TURN], ids=["receiver behind", "in turn"])
def test_ids_are_given_out_again_without_harm(core, scenario, rendezvous):
    Model(core, replace(scenario, rendezvous=rendezvous)).explore()


@BOTH
@TAGS
def test_a_request_freed_before_it_is_matched_keeps_its_place(core, user_tag, rendezvous):
    scenario = Scenario(
        sender=(("make", 0), ("free", 0), ("make", 1), *iterations(3, [1]), ("free", 1)),
        receiver=(("make", 0), ("free", 0), ("make", 1), *iterations(3, [1]), ("free", 1)),
        rendezvous=rendezvous,
        user_tag=user_tag,
    )
    Model(core, scenario).explore()
    late = replace(scenario, receiver=(("make", 0), ("make", 1), ("free", 0), *scenario.receiver[3:]))
    Model(core, late).explore()


def many_orders(core, **changes):
    """The first and the last of so many of one tag that the last has no canonical place."""
    return Scenario(
        sender=made(iterations(3)),
        receiver=made(iterations(3, (1, 0))),
        rendezvous=False,
        orders=(0, 1 << core.tags.order_bits),
        **changes,
    )


def test_canonical_transfers_and_channels_of_one_tag_live_together(core):
    Model(core, many_orders(core)).explore()


# Each of these is a mistake that the exploration must find.


def test_a_plan_adopted_one_start_early_is_found(core):
    scenario = Scenario(made(iterations(3)), made(iterations(3)), rendezvous=False, mutation="early adoption")
    with pytest.raises(Violation, match=r"segments differ|mismatch"):
        Model(core, scenario).explore()


def test_feedback_that_only_one_side_expects_is_found(core):
    scenario = Scenario(
        made(iterations(8)), made(iterations(8)), rendezvous=False, mutation="forgotten feedback"
    )
    with pytest.raises(Violation, match=r"left on the wire|mismatch"):
        Model(core, scenario).explore()


def test_an_id_given_out_again_when_the_sender_alone_let_go_is_found(core):
    with pytest.raises(Violation, match="is shared by channels 0 and 1"):
        Model(core, replace(RECYCLING, mutation="early recycling")).explore()


def test_an_id_given_out_too_early_mixes_up_the_data(core):
    """The harm itself, where nobody looks at the ids."""
    with pytest.raises(Violation, match="mismatch"):
        Model(core, replace(RECYCLING, mutation="early recycling", checks_ids=False)).explore()


def test_rendezvous_sends_without_copies_are_found_to_hang_the_textbook_program(core):
    with pytest.raises(Violation, match="deadlock"):
        Model(core, replace(TEXTBOOK, user_tag=CHANNEL_TAG, mutation="no copying")).explore()


def test_accepting_before_a_start_is_posted_would_hang(core):
    with pytest.raises(Violation, match="deadlock"):
        Model(
            core, replace(TEXTBOOK, user_tag=CHANNEL_TAG, rendezvous=True, mutation="early acceptance")
        ).explore()


def test_a_wrapping_order_is_found(core):
    with pytest.raises(Violation, match="mismatch"):
        Model(core, many_orders(core, mutation="wrapping order")).explore()
