"""Completion times show whether senders wait; protocols are split where that changes."""

import numpy as np
import pytest

from earlybird.data.errors import InputError
from earlybird.data.layout import parse_layout
from earlybird.data.pattern import Pattern
from earlybird.data.profile import Level, Profile, Protocol, profile_from_json
from earlybird.fit.completion import Waiting, find_waiting, warnings, with_senders
from earlybird.fit.observations import read_runs
from earlybird.fit.profile import fit_profile
from earlybird.predict.exchange import predict_exchange

SIZES = np.array([4**k for k in range(12)])
LINE = Level(
    "intra_socket",
    (
        Protocol(name="eager", latency_s=1e-6, bandwidth_bytes_per_s={1: 4e9}, extra={"latency_n": 2}),
        Protocol(
            min_bytes=8192,
            latency_s=2e-6,
            bandwidth_bytes_per_s={1: 1e10},
            extra={"begins_between_bytes": [4096, 8192]},
        ),
    ),
)


def protocols(level):
    return [(p.name, p.min_bytes, p.sender_waits) for p in level.protocols]


def found(path, level="intra_socket"):
    return find_waiting(read_runs([path]).completions)[level]


def waiting(letters, sizes=SIZES):
    """A Waiting as decided, from a string such as "..ww" with a letter for every size."""
    decided = np.array([letter == "w" for letter in letters])
    return Waiting(sizes[: len(letters)], decided.astype(float), decided, False)


@pytest.mark.parametrize(
    ("late", "prompt", "waits"), [(1.0, 1.0, True), (0.0, 1.0, False), (1.0, 0.01, False), (0.0, 0.1, False)]
)
def test_a_sender_waits_where_it_waits_for_a_late_receiver_and_for_delivery(
    make_run, add_completions, late, prompt, waits
):
    """Late 0, prompt 1: Intel MPI copies into shared memory for as long as the receiver copies out. Late 1,
    prompt 0: over TCP a rendezvous needs its receiver and is complete long before delivery."""
    path = add_completions(make_run("run"), lambda size: late > 0.5, prompt_share=lambda *_: prompt)
    assert found(path).decided.tolist() == [waits] * 12


@pytest.mark.parametrize(("from_bytes", "starts"), [(65536, [0, 65536]), (0, [0]), (1 << 30, [0])])
def test_messages_that_need_a_reply_and_are_buffered_then_await_their_receive(
    make_run, add_completions, from_bytes, starts
):
    path = add_completions(
        make_run("run"), lambda size: size >= from_bytes, prompt_share=lambda size, _: 0.02
    )
    line = Level("intra_socket", (Protocol(name="eager", latency_s=1e-6, bandwidth_bytes_per_s={1: 1e9}),))
    fitted = with_senders(line, found(path), {}).protocols
    assert [one.min_bytes for one in fitted] == starts
    assert not any(one.sender_waits for one in fitted)
    assert [bool(one.awaits_receive) for one in fitted] == [start >= from_bytes for start in starts]


@pytest.mark.parametrize(
    ("measured", "decided"),
    [
        ("............", "............"),
        ("wwwwwwwwwwww", "wwwwwwwwwwww"),
        (".....wwwwwww", ".....wwwwwww"),
        ("wwwww.......", "wwwww......."),
        ("...wwww.....", "...wwww....."),
        ("www....wwwww", "www....wwwww"),
        ("...........w", "...........w"),
        # A single size that differs is noise, on either side of a step too.
        (".....w......", "............"),
        ("wwwwwww.wwww", "wwwwwwwwwwww"),
        ("..w...wwwwww", "......wwwwww"),
        # Four changes are more than two steps tell: what contradicts fewest sizes.
        ("..www..w.www", "..wwwwwwwwww"),
    ],
)
def test_few_steps_stand_for_noisy_sizes(make_run, add_completions, measured, decided):
    waits = dict(zip(SIZES.tolist(), (letter == "w" for letter in measured), strict=True))
    result = found(add_completions(make_run("run"), waits.__getitem__))
    assert "".join(".w"[int(one)] for one in result.decided) == decided
    wrong = [int(size) for size, a, b in zip(SIZES, measured, decided, strict=True) if a != b]
    assert result.exceptions_bytes() == wrong


def test_of_equally_good_steps_the_one_nearest_to_the_shares_is_taken(make_run, add_completions):
    shares = dict(zip(SIZES.tolist(), [0.1] * 6 + [0.55] + [0.1] + [1.0] * 4, strict=True))
    path = add_completions(
        make_run("run"), lambda size: shares[size] > 0.5, prompt_share=lambda s, _: shares[s]
    )
    assert found(path).decided.tolist() == [False] * 8 + [True] * 4


def test_the_warm_up_and_other_levels_do_not_count(make_run, add_completions):
    path = add_completions(make_run("run"), lambda size: True)
    add_completions(path, lambda size: False, level="inter_node")
    assert found(path).share == pytest.approx(np.ones(12))
    assert not found(path, "inter_node").decided.any()


def test_shared_cores_count_only_where_no_other_sample_is(make_run, add_completions):
    path = add_completions(make_run("run"), lambda size: size >= 8192)
    add_completions(path, lambda size: False, oversubscribed=True, launches=9)
    result = found(path)
    assert not result.oversubscribed and result.decided.tolist() == (SIZES >= 8192).tolist()
    alone = add_completions(make_run("alone"), lambda size: size >= 8192, oversubscribed=True)
    result = found(alone)
    assert result.oversubscribed and result.decided.tolist() == (SIZES >= 8192).tolist()
    assert any("more ranks than cores" in text for text in fit_profile(read_runs([alone])).extra["warnings"])


def test_a_half_measured_size_counts_if_it_shows_that_senders_do_not_wait(make_run, add_completions):
    path = add_completions(make_run("run"), lambda size: size >= 8192, receivers=("late",))
    assert found(path).size_bytes.tolist() == [size for size in SIZES if size < 8192]
    # Nothing is known of larger ones: no completion, no verdict.
    only = add_completions(make_run("only"), lambda size: True, receivers=("late",))
    assert find_waiting(read_runs([only]).completions) == {}


def test_a_step_where_a_protocol_begins_divides_nothing():
    level = with_senders(LINE, waiting(".......wwwww"), {})
    assert protocols(level) == [("eager", 0, False), ("rendezvous", 8192, True)]
    assert level.protocols[1].extra == {
        "begins_between_bytes": [4096, 8192],
        "sender_waits_measured": True,
        "sender_waits_changes_between_bytes": [4096, 16384],
    }


def test_a_step_inside_a_protocol_makes_two_of_the_same_line():
    level = with_senders(LINE, waiting(".........www"), {})
    assert protocols(level) == [
        ("eager", 0, False),
        ("rendezvous", 8192, False),
        ("rendezvous", 262144, True),
    ]
    _, first, second = level.protocols
    assert second.continues(first) and not first.continues(LINE.protocols[0])
    assert first.extra == {"begins_between_bytes": [4096, 8192], "sender_waits_measured": True}
    assert second.extra == {
        "sender_waits_measured": True,
        "sender_waits_changes_between_bytes": [65536, 262144],
    }


def test_two_steps_divide_both_methods():
    level = with_senders(LINE, waiting("www.....ww.."), {})
    assert protocols(level) == [
        ("eager", 0, True),
        ("eager", 64, False),
        ("rendezvous", 8192, False),
        ("rendezvous", 65536, True),
        ("rendezvous", 1048576, False),
    ]


def test_a_step_is_put_where_the_library_tells_of_a_threshold():
    (_, _, last) = with_senders(LINE, waiting(".........www"), {"SOME_LIMIT": 131072}).protocols
    assert (last.min_bytes, last.extra["threshold"]) == (131072, "SOME_LIMIT")


def test_protocols_beyond_the_measured_sizes_keep_the_default(make_run, add_completions):
    level = with_senders(LINE, waiting("...."), {})
    assert protocols(level) == protocols(LINE)
    assert [p.extra.get("sender_waits_measured") for p in level.protocols] == [True, None]
    path = make_run("run", lambda n, size: 2e-6 + size / 1e10 + (size > 8192) * 4e-6)
    warnings = fit_profile(read_runs([add_completions(path, sizes=(16, 64))])).extra["warnings"]
    assert [text for text in warnings if "assumed" in text and "(rendezvous)" in text and "eager" not in text]


def test_a_fit_holds_what_was_measured_in_its_levels_and_in_every_replicate(make_run, add_completions):
    path = make_run("run", lambda n, size: 2e-6 + size / 1e10 + (size > 8192) * 4e-6, noise=0.01)
    profile = fit_profile(read_runs([add_completions(path, lambda size: size >= 1 << 18)]))
    expected = [("eager", 0, False), ("rendezvous", 16384, False), ("rendezvous", 1 << 18, True)]
    assert protocols(profile.levels["intra_socket"]) == expected
    assert not any("assumed" in warning for warning in profile.extra["warnings"])
    assert set(profile.intervals["intra_socket"]) == {"eager", "rendezvous"}
    assert len(profile.replicates) == 50
    for replicate in profile.replicates:
        assert protocols(replicate.levels["intra_socket"]) == expected
    assert profile_from_json(profile.to_json()).to_json() == profile.to_json()


def test_splitting_a_protocol_changes_no_time_but_the_senders(make_run):
    random = np.random.default_rng(5)
    pattern = Pattern([0, 1, 2, 3, 0, 2], [1, 2, 3, 0, 2, 0], random.integers(1, 1 << 20, 6))
    bandwidth = {1: 1e10, 2: 1.5e10, 4: 1.8e10}
    line = Protocol(latency_s=2e-6, sender_waits=False, bandwidth_bytes_per_s=bandwidth)
    whole = Level("intra_socket", (line,))
    split = with_senders(whole, waiting(".........ww."), {})
    assert len(split.protocols) == 3
    one, other = (Profile({level.name: level}) for level in (whole, split))
    for model in ("staircase", "max-rate", "postal"):
        a, b = (predict_exchange(pattern, parse_layout("1x1x4"), profile, model) for profile in (one, other))
        assert np.allclose(a.receive_s, b.receive_s, rtol=1e-12)
        if model != "staircase":
            assert np.allclose(a.time_s, b.time_s, rtol=1e-12)


def test_without_completions_the_name_decides_and_a_warning_says_so(make_run):
    profile = fit_profile(read_runs([make_run("run")]))
    (protocol,) = profile.levels["intra_socket"].protocols
    assert protocol.sender_waits and "sender_waits_measured" not in protocol.extra
    (warning,) = profile.extra["warnings"]
    assert "assumed" in warning and "earlybird measure completion" in warning


def test_completions_may_stand_in_a_run_of_their_own(make_run, add_completions, tmp_path):
    times, completions = make_run("times"), make_run("completions", launches=0)
    add_completions(completions, lambda size: False)
    with pytest.raises(InputError, match="no contention samples"):
        read_runs([completions])
    alone, both = fit_profile(read_runs([times])), fit_profile(read_runs([times, completions]))
    assert (alone.levels["intra_socket"].protocols[0].sender_waits,
            both.levels["intra_socket"].protocols[0].sender_waits) == (True, False)  # fmt: skip
    assert alone.id != both.id


def test_completions_of_another_context_are_refused(make_run, add_completions):
    path = add_completions(make_run("run"), launch={"version": "4.0"})
    with pytest.raises(InputError, match="version"):
        read_runs([path])


@pytest.mark.parametrize("fault", [{"level": "inter_rack"}, {"receivers": ("never",)}])
def test_a_completion_sample_that_says_nothing_usable_is_refused(make_run, add_completions, fault):
    with pytest.raises(InputError, match="measure again"):
        read_runs([add_completions(make_run("run"), **fault)])


def _over_tcp(buffered, whole_from=1 << 40):
    """The share of the delivery after which a send is complete if so many bytes are buffered."""
    return lambda size, _: 1.0 if size >= whole_from else max(0.02, 1 - buffered / size)


@pytest.mark.parametrize(
    ("whole_from", "expected"),
    [
        (1 << 40, [(0, False, 600_000), (1 << 21, True, 600_000)]),
        (1 << 22, [(0, False, 600_000), (1 << 21, True, 600_000), (1 << 22, True, None)]),
    ],
)
def test_what_the_network_buffers_is_found_and_where_senders_wait_for_all(
    make_run, add_completions, whole_from, expected
):
    path = add_completions(
        make_run("run", level="inter_node"),
        lambda size: size > 1 << 20,
        level="inter_node",
        sizes=tuple(1 << k for k in range(10, 24)),
        prompt_share=_over_tcp(600_000, whole_from),
    )
    result = found(path, "inter_node")
    assert result.buffered_bytes == pytest.approx(600_000, rel=0.01)
    line = Level("inter_node", (Protocol(latency_s=1e-6, bandwidth_bytes_per_s={1: 1e9}),))
    fitted = with_senders(line, result, {})
    assert [(p.min_bytes, p.sender_waits) for p in fitted.protocols] == [row[:2] for row in expected]
    for protocol, (*_, buffered) in zip(fitted.protocols, expected, strict=True):
        assert protocol.buffered_bytes == (None if buffered is None else pytest.approx(buffered, rel=0.01))


@pytest.mark.parametrize(("late_waits", "whole_from"), [(True, 1 << 22), (False, None)])
def test_sends_that_wait_for_all_or_for_nothing_need_no_size_between(
    make_run, add_completions, late_waits, whole_from
):
    """Sends that are complete without their receiver only copy for as long as the delivery."""
    path = add_completions(
        make_run("run", level="inter_node"),
        lambda size: late_waits and size >= 1 << 22,
        level="inter_node",
        sizes=tuple(1 << k for k in range(10, 24)),
        prompt_share=lambda size, _: 1.0 if size >= 1 << 22 else 0.02,
    )
    result = found(path, "inter_node")
    assert (result.buffered_bytes, result.whole_from_bytes) == (None, whole_from)
    line = Level("inter_node", (Protocol(latency_s=1e-6, bandwidth_bytes_per_s={1: 1e9}),))
    fitted = with_senders(line, result, {})
    expected = [(0, False), (1 << 22, True)] if late_waits else [(0, False)]
    assert [(p.min_bytes, p.sender_waits) for p in fitted.protocols] == expected


@pytest.mark.parametrize("with_empty", [False, True])
@pytest.mark.parametrize(("share", "buffered"), [(lambda *_: 0.5, None), (_over_tcp(300_000), 300_000)])
def test_a_message_without_data_does_not_decide_what_is_buffered(
    make_run, add_completions, share, buffered, with_empty
):
    path = add_completions(
        make_run("run", level="inter_node"),
        level="inter_node",
        sizes=tuple(2**k * 100_000 for k in range(6)),
        prompt_share=share,
    )
    if with_empty:
        add_completions(path, level="inter_node", sizes=(0,), prompt_share=lambda *_: 0.5)
    found_bytes = found(path, "inter_node").buffered_bytes
    assert found_bytes == (buffered if buffered is None else pytest.approx(buffered, rel=0.01))


def test_the_queue_model_waits_for_what_is_not_buffered():
    size = 3 << 20
    pattern, layout = Pattern(np.array([0]), np.array([1]), np.array([size])), parse_layout("2x1x1")
    for waits, buffered, expected in (
        (True, None, size), (True, 1 << 20, 2 << 20), (False, 1 << 20, 2 << 20), (False, None, 0)
    ):  # fmt: skip
        line = Protocol(
            latency_s=0.0, bandwidth_bytes_per_s={1: 1e9}, sender_waits=waits, buffered_bytes=buffered
        )
        profile = Profile({"inter_node": Level("inter_node", (line,))})
        time_s = predict_exchange(pattern, layout, profile, "queue").time_s
        assert time_s.tolist() == pytest.approx([expected / 1e9, size / 1e9])


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["rendezvous"], "one line describes all sizes and is named rendezvous, but times alone do not show"),
        (["eager", "rendezvous"], "assumed from the protocol's name (eager, rendezvous)"),
    ],
)
def test_what_the_names_of_protocols_do_not_show_is_said(names, said):
    protocols = tuple(
        Protocol(name=name, min_bytes=1024 * k, latency_s=1e-6, bandwidth_bytes_per_s={1: 1e9})
        for k, name in enumerate(names)
    )
    (text,) = warnings([Level(name="intra_socket", protocols=protocols)], {})
    assert said in text and "`earlybird measure completion" in text
