"""The plan and page of Thune et al. 2023, and Table I as profiles of the package."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from earlybird.compare import compare_times
from earlybird.data.errors import InputError
from earlybird.data.prediction import Prediction
from earlybird.data.profile import load_profile
from earlybird.data.run import Sample
from earlybird.measure.groups import Library, Options, Resources
from earlybird.papers.page import rows_table
from earlybird.papers.registry import PAPERS
from earlybird.papers.thune.experiments import exchanges, sweep_layout, sweep_pattern
from earlybird.papers.thune.published import MACHINES
from earlybird.papers.thune.sweep import sweeps
from earlybird.patterns.pairs import pairs_exchange
from earlybird.predict import Predictor
from earlybird.present.material import Material, MeasuredRun
from earlybird.present.render.terminal import print_table

THUNE = PAPERS["thune"]
PRINTED = list(csv.DictReader((Path(__file__).parent / "table1.csv").open()))


def mpich(*shape):
    resources = Resources.of(*shape)
    per_node = resources.cores_per_socket * resources.sockets
    return replace(
        resources, family="mpich", library=Library("mpich"),
        shares_cores=lambda layout: layout.num_ranks > per_node * layout.num_nodes,
    )  # fmt: skip


@pytest.mark.parametrize("name", MACHINES)
def test_table_i_is_in_the_profiles_of_the_package(name):
    profile = load_profile(name)
    for row in (row for row in PRINTED if row["profile"] == name):
        (protocol,) = profile.levels[row["level"]].protocols
        assert protocol.latency_s == pytest.approx(float(row["tau"]) * 1e-6)
        rates = [float(row[key]) * 1e9 for key in ("1", "2", "4", "8", "16")]
        table = dict(protocol.bandwidth_bytes_per_s)
        assert [table.pop(n) for n in (1, 2, 4, 8, 16)] == pytest.approx(rates)
        assert list(table.values()) == pytest.approx([float(row["max"]) * 1e9] if table else [])


def test_a_file_of_the_same_name_comes_before_the_profile(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "thune-kunpeng").write_text("{}")
    with pytest.raises(InputError):
        load_profile("thune-kunpeng")
    with pytest.raises(InputError, match="thune-epyc"):
        load_profile("thune-epyc")
    with pytest.raises(InputError):
        load_profile("../profiles/thune-kunpeng")


def test_the_sweep_has_three_pairs_with_the_sizes_of_figure_3():
    pattern = sweep_pattern(1024)
    assert sorted(zip(pattern.src, pattern.dst, pattern.bytes, strict=True)) == [
        (0, 1, 2048), (1, 0, 2048), (2, 3, 1024), (3, 2, 1024), (4, 5, 512), (5, 4, 512),
    ]  # fmt: skip
    # (5) and (6) with BW(6) of ThunderX2 between N = 4 and 8: the pairs are complete one after the other.
    times_s = Predictor(pattern, sweep_layout()).predict(load_profile("thune-thunderx2"), "staircase").time_s
    first_s = 2.3e-6 + 6 * 512 / 29e9
    assert times_s[4] == pytest.approx(first_s) and times_s[4] < times_s[2] < times_s[0]
    with pytest.raises(InputError, match="no pair"):
        pairs_exchange([])


def test_the_plan_has_the_exchanges_of_every_level():
    steps = THUNE.plan(Options(), mpich(32, 2, 4), "mpich")
    assert [step.name for step in steps] == [
        "messages", "figure3", "packing", "table2-intra_socket", "table2-inter_socket", "figure5-pairs",
        "figure5-reshuffled", "table2-inter_node", "tables3-4-mesh",
    ]  # fmt: skip
    assert [step.name for step in steps if step.is_fitted] == ["messages", "packing"]
    assert [group.points[0]["middle_bytes"] for group in steps[1].groups][-1] == 2 << 20
    assert not THUNE.remarks(Options(), mpich(32, 2, 4))
    small = THUNE.plan(Options(quick=True), mpich(2, 1), "mpich")
    assert [step.name for step in small] == [
        "messages", "figure3", "packing", "table2-intra_socket", "tables3-4-mesh",
    ]  # fmt: skip
    assert len(THUNE.remarks(Options(), mpich(2, 1))) == 3
    (packing,) = small[2].groups
    assert {point["packing"] for point in packing.points} == {"indexed"}  # the one that the page prints


def test_exchanges_have_messages_on_their_level_only():
    found = {one.step: one for one in exchanges(mpich(32, 2, 4))}
    intra = found["table2-intra_socket"]
    assert intra.pattern.num_messages == 192 and intra.layout.num_ranks == 64
    volumes = np.bincount(intra.pattern.src, intra.pattern.bytes)
    assert volumes.min() >= 50_000 and volumes.max() <= 500_003
    for step, level in (("intra_socket", 0), ("inter_socket", 1), ("inter_node", 2)):
        one = found[f"table2-{step}"]
        assert set(one.layout.level(one.pattern.src, one.pattern.dst)) == {level}
    for step in ("figure5-pairs", "figure5-reshuffled"):
        assert set(found[step].layout.level(found[step].pattern.src, found[step].pattern.dst)) == {0, 1}


def test_a_mesh_has_as_many_parts_as_cores_and_at_least_eight():
    small, large = (exchanges(mpich(*shape))[-1] for shape in ((2, 1), (16, 2)))
    assert (small.layout.num_ranks, large.layout.num_ranks, large.layout.text) == (8, 32, "1x2x16")
    for mesh in (small, large):
        ranks = mesh.layout.num_ranks
        assert set(mesh.pattern.src) == set(mesh.pattern.dst) == set(range(ranks))
        assert mesh.pattern.total_bytes == pytest.approx(500_000 * ranks, rel=0.05)


def test_a_mesh_stands_next_to_the_nearest_number_of_processes():
    header = {"settings": {"reproduce": "thune", "step": "tables3-4-mesh", "mpi": "mpich"}, "id": "t"}
    config = {"mpi": "mpich", "messages": 40}
    times_s, zeros = np.full(8, 1e-3), np.zeros(8)
    sample = Sample("exchange", "exchange", config, "0", times_s[:1], rank_times_s=times_s[None])
    compared = compare_times(times_s, {"staircase": Prediction("staircase", zeros, 0.9 * times_s, zeros)})
    compared = replace(compared, extra={"run_id": "t"})
    material = Material(runs=(MeasuredRun("mesh", header, (), (sample,)),), comparisons=(compared,))
    rows = [row for row in THUNE.rows(material) if row.figure.startswith("Table I") and row.here]
    (row,) = rows
    assert "26 processes" in row.quantity and (row.paper, row.here) == ("0.152", "0.100")
    assert row.note.startswith("a generated mesh in 8 parts (paper: 26); 8 ranks, 40 messages")


def test_what_needs_another_machine_says_so():
    notes = {row.quantity: row.note for row in THUNE.rows(Material())}
    largest = next(text for text in notes if "8192 processes, 2744632 messages" in text)
    assert "needs 8192 cores on 64 nodes" in notes[largest]


def figure_3(host="here"):
    """Figure 3 of a machine whose times are 1.5 times those of Rome by the staircase."""
    times_s = 1.5 * Predictor(sweep_pattern(1024), sweep_layout()).predict(ROME, "staircase").time_s
    config = {"mpi": "mpich", "middle_bytes": 1024, "messages": 6}
    sample = Sample("exchange", "time", config, "0", times_s[None].repeat(6, 0).max(1),
                    rank_times_s=np.tile(times_s, (6, 1)))  # fmt: skip
    header = {"settings": {"reproduce": "thune", "step": "figure3"}, "id": "f", "machine": {"host": host}}
    return MeasuredRun("figure3", header, (), (sample,))


def messages(host="here"):
    header = {"settings": {"reproduce": "thune", "step": "messages"}, "id": "m", "machine": {"host": host}}
    return MeasuredRun("messages", header, (), ())


ROME = load_profile("thune-epyc-rome")


def test_figure_3_is_predicted_by_the_profile_of_its_machine_only():
    own = replace(ROME, runs=({"id": "m", "sha256": ""},), context={"flavour": "mpich"})
    (sweep,) = sweeps(Material(runs=(figure_3(), messages()), profiles=(ROME, own)))
    assert sweep.error("staircase") == pytest.approx(1 / 3)
    assert sweeps(Material(runs=(figure_3(),), profiles=(ROME,))) == []
    other = replace(own, context={"flavour": "openmpi"})
    assert sweeps(Material(runs=(figure_3(), messages()), profiles=(other,))) == []
    assert sweeps(Material(runs=(figure_3(), messages("there")), profiles=(own,))) == []


def test_an_exchange_has_an_empty_one_where_the_launcher_says_that_ranks_share_cores():
    def launched(shares_cores):
        resources = replace(mpich(32, 2, 4), shares_cores=shares_cores)
        steps = THUNE.plan(Options(), resources, "mpich")
        return [len(step.groups) for step in steps if step.exchange is not None]

    alone, crowded = launched(lambda layout: False), launched(lambda layout: layout.num_nodes > 1)
    # The last two are between nodes.
    assert crowded[:-2] == alone[:-2] and crowded[-2] > alone[-2] and crowded[-1] > alone[-1]
    notes = THUNE.remarks(Options(), replace(mpich(2, 1), shares_cores=lambda layout: False))
    assert not any("scheduler" in note for note in notes)


def test_long_values_are_folded_and_missing_bandwidths_name_the_cores(capsys):
    rows = THUNE.rows(Material())
    assert any(row.note == "not measured: needs 16 cores on a socket" for row in rows)
    long = [replace(row, here="loop-pack 381 MB/s, loop-unpack 319 MB/s, pack 320 MB/s, unpack 266 MB/s",
                    mpi="Intel MPI") for row in rows]  # fmt: skip
    print_table(rows_table(THUNE, long))
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 100
