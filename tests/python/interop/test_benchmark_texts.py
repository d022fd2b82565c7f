"""What a text of OSU or IMB is: by program, part, version, title and options, never by its table alone."""

import json
import re
from pathlib import Path

import pytest

from earlybird.data.errors import InputError
from earlybird.data.run import Run
from earlybird.interop.imb_outputs import read_imb
from earlybird.interop.imported import Imported, date_in
from earlybird.interop.line_prefixes import bare
from earlybird.interop.osu_outputs import read_osu

RECORDED = Path(__file__).parents[2] / "recorded" / "benchmarks"
WHERE = ("--mpi", "openmpi", "--level", "inter_node")


@pytest.fixture
def earlybird(in_process):
    return in_process


def osu(text: str, ranks: int | None = None, window: int | None = None) -> Imported:
    return read_osu(bare(text), "text", ranks, window)


def imb(text: str, window: int | None = None) -> Imported:
    return read_imb(bare(text), "text", window)


def latency(title: str = "OSU MPI Latency Test v7.5", remark: str = "") -> str:
    return f"# {title}\n{remark}# Size       Avg Latency(us)\n1                      19.73\n2    19.50\n"


PINGPONG = """#---------------------------------------------------
# Benchmarking PingPong
# #processes = 2
#---------------------------------------------------
       #bytes #repetitions      t[usec]   Mbytes/sec
            0         1000         1.45         0.00
            1         1000         1.46         0.68
         1024         1000        24.01        42.65
      4194304           10       653.76      6415.63

"""
UNIBAND = """# Benchmarking Uniband
# #processes = 2
       #bytes #repetitions   Mbytes/sec      Msg/sec
            0         1000         0.00      2189915
         1024         1000      2078.85      2030125

"""
BCAST = """# Benchmarking Bcast
# #processes = 4
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
         1024         1000         3.10         4.20         3.90

"""
BARRIER = """# Benchmarking Barrier
# #processes = 4
 #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
         1000         3.10         4.20         3.90

"""
MULTI = """# Benchmarking Multi-PingPong
# ( 2 groups of 2 processes each running simultaneous )
# Group    0:     0    1
# Group    1:     2    3
#-----------------------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec
            0         1000         3.10         3.20         3.15         0.00
            1         1000         3.11         3.25         3.18         0.31

"""


def imb_text(
    *tables: str, title: str = "Intel(R) MPI Benchmarks 2021.3, MPI-1 part", call: str = "IMB-MPI1"
) -> str:
    calling = f"# Calling sequence was: \n\n# {call} \n\n" if call else ""
    return (
        f"#---\n#    {title}    \n#---\n\n{calling}{''.join(tables)}\n# All processes entering MPI_Finalize\n"
    )


@pytest.mark.parametrize("title", [
    "OSU MPI-CUDA Latency Test v7.5", "OSU MPI-ROCM Latency Test v7.5", "OSU MPI-OPENACC Latency Test v5.6",
    "OSU MPI-CUDA Multi Latency Test v7.5", "OSU MPI-CUDA Broadcast Latency Test v7.3",
    "OSU MPI-SYCL Latency Test v7.6", "OSU MPI-MANAGED Latency Test v7.3",
])  # fmt: skip
def test_titles_with_a_device_are_of_a_gpu(title):
    with pytest.raises(InputError, match="buffers in a GPU"):
        osu(latency(title), ranks=2)


@pytest.mark.parametrize("remark", [
    "# Send Buffer on DEVICE (D) and Receive Buffer on DEVICE (D)\n",
    "# Send Buffer on HOST (H) and Receive Buffer on DEVICE (D)\n",
    "# Send Buffer on MANAGED (M) and Receive Buffer on HOST (H)\n",
    "# Rank 0 Memory on DEVICE (D) and Rank 1 Memory on HOST (H)\n",
])  # fmt: skip
def test_any_buffer_that_is_not_of_the_host_is_of_a_gpu(remark):
    for title in ("OSU MPI-CUDA Latency Test v7.4", "OSU MPI Latency Test v7.4"):
        with pytest.raises(InputError, match="buffers in a GPU"):
            osu(latency(title, remark))


def test_two_buffers_of_the_host_are_no_gpus():
    remark = "# Send Buffer on HOST (H) and Receive Buffer on HOST (H)\n"
    (first, _) = osu(latency("OSU MPI-CUDA Latency Test v7.4", remark)).points
    assert first.kernel == "pingpong"
    with pytest.raises(InputError, match="what MPI-NPU stands for is not known"):
        osu(latency("OSU MPI-NPU Latency Test v7.4", remark))


@pytest.mark.parametrize("title", [
    "OSU MPI_Put Latency Test v7.4", "OSU MPI_Get_accumulate latency Test v7.4",
    "OMB-Py MPI Latency Test",
    "OSU Latency Test", "OSU NCCL-CUDA Latency Test v7.4", "OSU OpenSHMEM Put Test v7.4",
    "OSU UPC++ Async Copy (Put) Test v7.4", "OSU MPI_Put-CUDA Latency Test v7.4",
    "OSU Open MPI Bandwidth Test",
])  # fmt: skip
def test_other_programs_of_osu_are_refused_by_name(title):
    named = re.escape(title.partition(" Test")[0])
    with pytest.raises(InputError, match=f"is of '{named}', which is not one of"):
        osu(latency(title))


@pytest.mark.parametrize("title", [
    "OSU MPI Latency Persistent Test v7.4", "OSU MPI Bandwidth Persistent Test v7.4",
    "OSU MPI Non-blocking Broadcast Latency Test v7.4",
    "OSU MPI All-to-Allw Personalized Exchange Latency Test v7.4",
    "OSU MPI Latency Test (Version 2.2)", "OSU MPI Latency Test v8.0", "OSU MPI Init Test v7.4",
])  # fmt: skip
def test_other_tests_and_versions_are_refused(title):
    with pytest.raises(InputError, match=r"no quantity here|is not known"):
        osu(latency(title), ranks=2)


@pytest.mark.parametrize(("command", "named"), [
    ("mpirun -n 4 ./osu_bw_fan_in", "osu_bw_fan_in"),
    ("mpirun -n 4 osu_mbw_mr -d cuda D D", "buffers in a GPU"),
    ("mpirun -n 2 osu_latency -m 1:8 D H", "buffers in a GPU"),
])  # fmt: skip
def test_a_command_line_above_the_title_is_read(command, named):
    text = "# OSU MPI Bandwidth Test v7.4\n# Size      Bandwidth (MB/s)\n1   3.0\n"
    with pytest.raises(InputError, match=named):
        osu(f"$ {command}\n{text}")
    assert osu(f"$ mpirun -n 2 osu_bw -W 128\n{text}").points[0].config["window"] == 128
    with pytest.raises(InputError, match="--window is 64 and text has a window of 128"):
        osu(f"$ mpirun -n 2 osu_bw -W 128\n{text}", window=64)


def test_the_window_is_that_of_the_command_line_of_this_program():
    text = "# OSU MPI Bandwidth Test v7.3\n# Size      Bandwidth (MB/s)\n1   3.0\n"
    assumed = "64 messages in a window are assumed"
    for before, window, is_assumed in (
        ("$ osu_bibw -W 128\nsegmentation fault\n$ osu_bw\n", 64, True),
        ("$ osu_bw -W 128\nsegmentation fault\n$ osu_bw --window-size=16\n", 16, False),
        ("$ osu_bw -W 128\nsegmentation fault\n$ osu_bw -x 10\n", 64, True),
        ("$ osu_bibw -W 128\n", 64, True),
        ("$ osu_bw -W 16\n$ osu_bibw -W 32\n", 16, False),
        ("", 64, True),
    ):
        imported = osu(before + text)
        assert imported.points[0].config["window"] == window
        assert (assumed in imported.hidden) == is_assumed


BROADCAST = "# OSU MPI Broadcast Latency Test v7.4\n# Size       Avg Latency(us)\n4     1.13\n"


@pytest.mark.parametrize(("command", "root", "is_assumed"), [
    ("", 0, True), ("osu_bcast -x 3", 0, True), ("osu_bcast -k fixed:3", 3, False),
    ("osu_bcast --root-rank=FIXED:0 -f", 0, False), ("osu_bcast -kfixed:2", 2, False),
    ("osu_reduce -k rotate", 0, True),
])  # fmt: skip
def test_the_root_of_osu_is_that_of_its_command_line_or_said_to_be_assumed(command, root, is_assumed):
    imported = osu(f"$ mpirun -n 4 {command}\n{BROADCAST}", ranks=4)
    assert imported.points[0].config["root"] == root
    assert ("root 0 is assumed (-k)" in imported.hidden) == is_assumed


def test_other_roots_and_buffers_of_osu_are_refused_where_a_command_line_has_them():
    for options, says in (
        ("-k rotate", "'-k rotate': a root that is not the same"),
        ("--root-rank rotate", "not the same in all iterations"),
        ("-k fixed:4", "'-k fixed:4', and --ranks is 4"),
        ("-f -l", "with MPI_IN_PLACE"),
    ):
        with pytest.raises(InputError, match=says):
            osu(f"+ ./osu_bcast {options}\n{BROADCAST}", ranks=4)
    assert "root 0" not in osu(BROADCAST.replace("v7.4", "v7.1"), ranks=4).hidden
    assert "root 0" not in osu(BROADCAST.replace("Broadcast", "Allreduce"), ranks=4).hidden


def test_what_osu_does_not_print_is_said():
    text = "# OSU MPI Bandwidth Test v7.5\n# Size      Bandwidth (MB/s)\n1   3.0\n"
    assert "osu_bw_fan_in and osu_bw_fan_out print the same text" in osu(text).hidden
    assert "fan_in" not in osu(text.replace("v7.5", "v7.3")).hidden
    assert "64 messages in a window are assumed" in osu(text).hidden
    text = (RECORDED / "osu_mbw_mr.txt").read_text()
    assert "whether buffers were in a GPU is not printed" in osu(text).hidden
    with pytest.raises(InputError, match="varied windows"):
        osu(text.replace("window size: 64", "window size: varied"))
    with pytest.raises(InputError, match="--window is 32 and text has a window of 64"):
        osu(text, window=32)


def test_a_message_rate_of_a_median_printed_as_0_is_no_mean():
    """Launches of one point would otherwise have the mean of one and the median of another."""
    text = (
        "# OSU MPI Multiple Bandwidth / Message Rate Test v7.4\n# [ pairs: 2 ] [ window size: 64 ]\n"
        "# Size                  MB/s        Messages/s P50 Tail BW(MB/s)\n1    0.00   3000.00   0.00\n"
        "2    0.01   3000.00   0.02\n"
    )
    zero, median = osu(text).points
    assert (zero.times_s[0], zero.statistic, median.statistic) == (0, "median", "median")
    assert median.times_s[0] == pytest.approx(2 * 64 * 2 / 0.02e6)
    without_rate = re.sub(r" +Messages/s P50.*| +3000.*", "", text)
    (_, mean) = osu(without_rate).points
    assert (mean.times_s[0], mean.statistic) == (pytest.approx(2 * 64 * 2 / 0.01e6), "mean")
    with pytest.raises(InputError, match="no quantity here"):
        osu(without_rate.replace("MB/s", "Bandwidth (MB/s)"))


def threaded(receivers: int, time_us: float) -> str:
    return (
        f"# Number of Sender threads: 1 \n# Number of Receiver threads: {receivers}\n"
        f"# OSU MPI Multi-threaded Latency Test v7.0\n# Size          Latency (us)\n"
        + "".join(f"{size}                       {time_us:.2f}\n" for size in (0, 1, 2, 4))
    )


def test_thread_counts_are_points_of_their_own(earlybird, refused, tmp_path):
    for receivers, time_us in ((2, 3.5), (16, 17.5)):
        (tmp_path / f"{receivers}.txt").write_text(threaded(receivers, time_us))
        earlybird("import", "osu", f"{receivers}.txt", *WHERE, "-o", f"run{receivers}")
    earlybird("import", "osu", "2.txt", "16.txt", *WHERE, "-o", "both")
    samples = Run.open(tmp_path / "both").samples()
    assert {(one.config["threads"], one.median_s()) for one in samples} == {
        ("1:2", 3.5e-6),
        ("1:16", 17.5e-6),
    }
    shown = earlybird("show", "both").stdout
    assert re.search(r"0 B +1:2 +3\.5 us", shown) and re.search(r"0 B +1:16 +17\.5 us", shown)
    result = earlybird("compare", "run2", "run16", check=False)
    refused(result, "first differ in threads (run2 has 1:2; run16 has 1:16)")


def test_process_counts_are_points_of_their_own():
    head = "# Number of forked processes in sender: 2\n# Number of forked processes in receiver: 4\n"
    points = osu(head + latency("OSU MPI Multi-process Latency Test v7.4")).points
    assert {one.config["processes"] for one in points} == {"2:4"}
    assert "processes" not in osu(latency("OSU MPI Multi-process Latency Test v5.4")).points[0].config


def test_means_and_medians_are_of_each_point():
    """The column Max Latency is the slowest rank's mean, also with -z 50."""
    text = (
        "# OSU MPI All-to-Allv Personalized Exchange Latency Test v7.5\n# Datatype: MPI_CHAR.\n"
        "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations  P50 Tail Lat(us)  "
        "P90 Tail Lat(us)  P99 Tail Lat(us)\n"
        "4096                  467.38            460.43            474.05        1000            407.18     "
        "       584.22            634.30\n"
    )
    found = osu(text, ranks=384)
    assert [(one.quantity, one.times_s[0], one.statistic) for one in found.points] == [
        ("mean_over_ranks", pytest.approx(407.18e-6), "median"),
        ("completion", pytest.approx(474.05e-6), "slowest_rank_mean"),
    ]
    values = "median over iterations (mean over ranks), mean over iterations of the slowest rank (completion)"
    assert f"values: {values}" in found.hidden


def test_means_and_medians_are_no_launches_of_one_point(earlybird, refused, tmp_path):
    texts = [RECORDED / f"{name}.txt" for name in ("osu_latency", "osu_latency-z")]
    result = earlybird("import", "osu", *texts, *WHERE, "-o", "run", check=False)
    refused(result, "the mean over iterations", "the median over iterations", "a run of its own")
    assert not (tmp_path / "run").exists()


def test_values_of_one_digit_are_said_to_be_rounded(earlybird, tmp_path):
    rows = "".join(f"{size}    {rate:.2f}\n" for size, rate in ((1, 0), (2, 0.01), (4, 0.01), (8, 0.25)))
    text = f"# OSU MPI Bandwidth Test v3.1.1\n# Size        Bandwidth (MB/s)\n{rows}"
    (tmp_path / "text.txt").write_text(text)
    said = earlybird("import", "osu", "text.txt", *WHERE, "-o", "run").stderr
    assert "2 values printed with one digit, rounded by up to 50 %" in said
    assert [one.rounding for one in Run.open(tmp_path / "run").samples()] == [0.5, 0.5, 0]
    assert "2 values printed with one digit, by up to 50 %" in earlybird("show", "run").stdout


@pytest.mark.parametrize("title", [
    "Intel(R) MPI Benchmarks 2021.3, IMB-P2P part", "Intel(R) MPI Benchmarks 2021.3, MPI-NBC part",
    "Intel(R) MPI Benchmarks 2021.3, MPI-RMA part", "Intel(R) MPI Benchmarks 2021.3, MPI-2 part",
    "Intel(R) MPI Benchmarks 2021.3, MPI-IO part", "Intel(R) MPI Benchmarks 2021.3, MT part",
    "Intel(R) MPI Benchmarks 2021.11, MPI-4 part", "Intel(R) MPI Benchmarks 2021.3",
])  # fmt: skip
def test_other_parts_of_imb_are_refused_by_name(title):
    """Their tables have the names of IMB-MPI1's: the PingPong of IMB-P2P runs in all pairs at once."""
    part = title.partition(", ")[2] or "no part"
    with pytest.raises(InputError, match=f"is of '{part}' of IMB"):
        imb(imb_text(PINGPONG, title=title))


def test_the_title_of_imb_io_has_no_end_of_its_line():
    with pytest.raises(InputError, match="is of 'MPI-IO partn' of IMB"):
        imb("#---\n#    Intel(R) MPI Benchmarks 2021.11, MPI-IO partn#-----\n" + PINGPONG)


def test_a_real_text_of_imb_p2p_is_refused(earlybird, refused):
    text = RECORDED / "other" / "imb-p2p.txt"
    refused(earlybird("import", "imb", text, *WHERE, "-o", "run", check=False), "IMB-P2P part")


@pytest.mark.parametrize(("title", "call"), [
    ("Intel(R) MPI Benchmarks 2021.10, MPI-1 part (GPU)", "./IMB-MPI1-GPU PingPong"),
    ("Intel(R) MPI Benchmarks 2021.10, MPI-1 part", "/opt/imb/IMB-MPI1-GPU PingPong"),
    ("Intel(R) MPI Benchmarks 2021.2, MPI-1 part", "IMB-MPI1 -mem_alloc_type device PingPong"),
    ("Intel(R) MPI Benchmarks 2021.10, RMA part (GPU), Technical preview", "IMB-RMA-GPU"),
])  # fmt: skip
def test_imb_of_a_gpu_is_refused(title, call):
    with pytest.raises(InputError, match="buffers in a GPU"):
        imb(imb_text(PINGPONG, title=title, call=call))


@pytest.mark.parametrize("version", ["2018", "2018 Update 1", "2019", "2019 Update 6", "2021.1", "2021.11"])
@pytest.mark.parametrize("maker", ["Intel (R)", "Intel(R)"])
def test_titles_of_every_known_version_are_read(maker, version):
    found = imb(imb_text(PINGPONG, title=f"{maker} MPI Benchmarks {version}, MPI-1 part"))
    assert [one.times_s[0] for one in found.points] == [
        pytest.approx(time_us * 1e-6, rel=0.01) for time_us in (1.45, 1.46, 24.01, 653.76)
    ]
    assert found.version == version


@pytest.mark.parametrize("version", ["4.1 Update 1", "2017", "2022.1", "3.2.4"])
def test_other_versions_of_imb_are_refused(version):
    with pytest.raises(InputError, match=f"version '{version}' of IMB, which is not known"):
        imb(imb_text(PINGPONG, title=f"Intel (R) MPI Benchmarks {version}, MPI-1 part"))


@pytest.mark.parametrize(("version", "call", "window"), [
    ("2018 Update 1", "IMB-MPI1 Uniband", 64), ("2019 Update 2", "IMB-MPI1 -npmin 2 Uniband", 64),
    ("2021.1", "IMB-MPI1 Uniband", 64), ("2021.2", "IMB-MPI1 Uniband", 256),
    ("2021.11", "IMB-MPI1 Uniband", 256),
    ("2021.3", "IMB-MPI1 -window_size 64 Uniband", 64), ("2021.1", "IMB-MPI1 -window_size 16 Uniband", 16),
    ("2019 Update 2", "", 64),
])  # fmt: skip
def test_the_window_of_imb_is_that_of_its_version_and_options(version, call, window):
    found = imb(imb_text(UNIBAND, title=f"Intel(R) MPI Benchmarks {version}, MPI-1 part", call=call))
    assert {one.config["window"] for one in found.points} == {window}
    assert found.points[0].times_s[0] == pytest.approx(window / 2189915)
    assert ("are assumed" in found.hidden) == (not call)


@pytest.mark.parametrize(("options", "table", "parameters"), [
    ("-off_cache 32,64", PINGPONG, {"off_cache": "32,64", "buffers": "off-cache"}),
    ("-off_cache -1", PINGPONG, {"off_cache": "default", "buffers": "off-cache"}),
    ("-off_cache 0", PINGPONG, {"buffers": "reuse"}),
    ("-map 2x2", PINGPONG, {"map": "2x2"}),
    ("-map 2x1", PINGPONG, {}),
    ("-warm_up off", PINGPONG, {"warm_up": "off"}),
    ("-warm_up on", PINGPONG, {}),
    ("-contig_type resize", PINGPONG, {"contig_type": "resize"}),
    ("-thread_level multiple", PINGPONG, {"thread_level": "multiple"}),
    ("-root_shift on", BCAST, {"root_shift": "on"}),
    ("-root_shift on", PINGPONG, {}),
    ("-root_shift off", BCAST, {"root": 0}),
    ("-sync 0", BCAST, {"sync": "off"}),
    ("-sync off", BARRIER, {}),
    ("-sync off", PINGPONG, {}),
    ("-imb_barrier yes", BCAST, {"imb_barrier": "on"}),
    ("-iter 50 -msglog 4:16 -time 0.5 -mem 2 -npmin 2", PINGPONG, {}),
    ("-iter_policy off -zero_size off -multi 0 -msgsize 8,16", PINGPONG, {}),
])  # fmt: skip
def test_options_of_imb_that_change_what_is_measured_are_kept(options, table, parameters):
    plain = imb(imb_text(table)).points[0].config
    config = imb(imb_text(table, call=f"./IMB-MPI1 {options} PingPong Bcast")).points[0].config
    assert {name: value for name, value in config.items() if plain.get(name) != value} == {
        name: value for name, value in parameters.items() if plain.get(name) != value
    }
    assert ("root" in config) == ("root" in plain and "root_shift" not in parameters)


@pytest.mark.parametrize(
    "option", ["-new_option 3", "-sync maybe", "-off_cache x", "-map 4", "-window_size 0", "-load a.yaml"]
)
def test_options_of_imb_that_are_not_known_are_refused_by_name(option):
    with pytest.raises(InputError, match=f"'{option}', and what that changes is not known"):
        imb(imb_text(PINGPONG, call=f"IMB-MPI1 {option} PingPong"))


def test_the_level_of_threads_that_imb_prints_is_kept():
    head = "# MPI Thread Environment: MPI_THREAD_{}\n"
    text = imb_text(head.format("MULTIPLE"), PINGPONG)
    assert imb(text).points[0].config["thread_level"] == "multiple"
    assert "thread_level" not in imb(imb_text(head.format("SINGLE"), PINGPONG)).points[0].config


def test_arguments_that_imb_2018_breaks_into_lines_are_read():
    call = "./IMB-MPI1 -npmin 2 -iter 100 -msglog 3:4\n#            -off_cache 16,64 PingPong"
    found = imb(imb_text(PINGPONG, title="Intel (R) MPI Benchmarks 2018, MPI-1 part", call=call))
    assert found.points[0].config["off_cache"] == "16,64"


def test_the_order_of_ranks_of_map_is_kept():
    head = "# #processes = 2; rank order (rowwise): \n     0\n     2\n\n"
    table = PINGPONG.replace("# #processes = 2\n", head)
    assert imb(imb_text(table, call="IMB-MPI1 -map 2x2 PingPong")).points[0].config["map"] == "2x2: 0 2"
    assert imb(imb_text(table, call="")).points[0].config["map"] == "0 2"


def test_groups_at_once_are_left_out_and_named():
    found = imb(imb_text(PINGPONG, MULTI))
    assert [one.config["size_bytes"] for one in found.points] == [0, 1, 1024, 4194304]
    assert "left out, without a quantity here: multi-pingpong" in found.hidden


def test_a_real_text_of_groups_has_the_tables_of_all_processes(earlybird, tmp_path):
    """With -multi 1 their rows begin with the number of the group, here the only one."""
    earlybird("import", "imb", RECORDED / "imb_groups.txt", *WHERE, "-o", "run")
    samples = Run.open(tmp_path / "run").samples()
    assert {(one.config["operation"], one.config["ranks"]) for one in samples} == {
        ("barrier", 4),
        ("allreduce", 4),
    }


@pytest.mark.parametrize("row", [
    "1048576 out-of-mem.; needed X=   0.251 GB; use flag \"-mem X\" or MAX_MEM_USAGE>=X (IMB_mem_info.h)",
    "1048576 time-out.; Time limit (secs_per_sample * msg_sizes_list_len) is over",
    "1048576 int-overflow; The production rank*size caused int overflow; Stopping benchmark",
])  # fmt: skip
def test_sizes_that_imb_gave_up_are_named(row):
    found = imb(imb_text(BCAST.rstrip("\n") + f"\n      {row}\n\n", PINGPONG))
    assert {one.config.get("operation", one.kernel) for one in found.points} == {"bcast", "pingpong"}
    assert (
        f"given up by IMB itself: bcast of 4 ranks at 1 MiB ({row.split()[1].rstrip('.;')})" in found.hidden
    )
    only = "\n".join(BCAST.splitlines()[:3]) + f"\n      {row}\n\n"
    assert "bcast of 4 ranks at 1 MiB" in imb(imb_text(only, PINGPONG)).hidden
    with pytest.raises(InputError, match="given up by IMB itself: bcast"):
        imb(imb_text(only))


def test_builds_of_imb_with_other_settings_are_refused():
    with pytest.raises(InputError, match="IMB_OPTIONAL"):
        imb(imb_text("# !! Attention: results have been achieved in\n# !! IMB_OPTIONAL mode.\n", PINGPONG))
    with pytest.raises(InputError, match="without CHECK"):
        imb(imb_text(PINGPONG.replace("Mbytes/sec", "Mbytes/sec  defects")))


def test_a_bandwidth_that_contradicts_the_time_is_not_used():
    table = PINGPONG.replace("42.65", "85.30")
    assert imb(imb_text(table)).points[2].times_s[0] == pytest.approx(24.01e-6)


PREFIXES = [
    "[1,0]<stdout>:", "[1, 0]<stdout>: ", "[prterun-n1-123@1,0]<stdout>: ", "0: ", " 0: ", "[0] ", "[0]: ",
    "00:55:22  ", "2023-01-09T10:00:00.123Z ", "[2023-01-09T10:00:00.123Z] ", "2023-01-09 10:00:00,123 ",
    "2023-01-09T10:00:00+01:00 [1,0]<stdout>:", "Mon Jan  9 10:00:00 2023<stdout>:", "    ", "\t", "> ",
    "node01: ", "node01 | ", "+", "   12\t", "12:", "\x1b[32m",
]  # fmt: skip


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("name", ["osu_latency", "imb_PingPong", "imb_collectives", "repro_barrier"])
def test_what_every_line_begins_with_is_removed(prefix, name):
    text = (RECORDED / f"{name}.txt").read_text()
    prefixed = "".join(f"{prefix}{line}\n" for line in text.splitlines())
    # Blanks at the beginning of a line mean nothing.
    assert [line.split() for line in bare(prefixed).splitlines()] == [
        line.split() for line in text.splitlines()
    ]
    assert bare(text) == text


def test_ranks_and_times_differ_from_line_to_line():
    lines = latency().splitlines()
    prefixed = "".join(f"2023-01-09T10:00:0{k}Z [1,{k % 2}]<stdout>:{line}\n" for k, line in enumerate(lines))
    assert len(osu(prefixed).points) == 2
    assert len(osu(prefixed.replace("\n", "\r\n")).points) == 2


@pytest.mark.parametrize("prefix", ["[1,0]<stdout>:", "0: ", "10:00:01 ", "n1> "])
@pytest.mark.parametrize("read", [osu, imb])
def test_a_prefix_that_some_lines_do_not_have_is_named(read, prefix):
    text = latency() if read is osu else imb_text(PINGPONG)
    prefixed = "".join(f"{prefix}{line}\n" for line in text.splitlines()) + "Done.\n"
    with pytest.raises(InputError, match=re.escape(repr(prefix))):
        read(prefixed)


def test_a_prefix_of_the_tables_alone_is_named():
    head, table = imb_text("@", PINGPONG).split("@")
    prefixed = head + "".join(f"[1,0]<stdout>:{line}\n" for line in table.splitlines())
    with pytest.raises(InputError, match=re.escape("'[1,0]<stdout>:' before the titles of its tables")):
        imb(prefixed)


def test_texts_that_differ_only_in_their_prefixes_are_one_launch(earlybird, refused, tmp_path):
    text = (RECORDED / "osu_latency.txt").read_text()
    (tmp_path / "tagged.txt").write_text("".join(f"0: {line}\n" for line in text.splitlines()))
    texts = (RECORDED / "osu_latency.txt", "tagged.txt")
    refused(earlybird("import", "osu", *texts, *WHERE, "-o", "run", check=False), "the same text")


def test_parameters_survive_an_export(earlybird, tmp_path):
    (tmp_path / "2.txt").write_text(threaded(2, 3.5))
    earlybird("import", "osu", "2.txt", *WHERE, "-o", "run")
    earlybird("export", "run", "--to", "osu", "-o", "texts")
    (text,) = (tmp_path / "texts").iterdir()
    assert {one.config["threads"] for one in osu(text.read_text()).points} == {"1:2"}


def test_points_with_options_that_osu_cannot_print_are_not_exported(earlybird, tmp_path):
    (tmp_path / "imb.txt").write_text(imb_text(PINGPONG, call="IMB-MPI1 -off_cache 32,64 PingPong"))
    earlybird("import", "imb", "imb.txt", *WHERE, "-o", "run")
    earlybird("export", "run", "--to", "osu", "-o", "texts", check=False)
    assert not list((tmp_path / "texts").glob("*"))


def test_a_profile_is_not_fitted_to_several_kinds_of_ping_pongs(earlybird, refused, tmp_path):
    for name, call in (("plain", "IMB-MPI1 PingPong"), ("cold", "IMB-MPI1 -off_cache -1 PingPong")):
        (tmp_path / f"{name}.txt").write_text(imb_text(PINGPONG, call=call))
        earlybird("import", "imb", f"{name}.txt", *WHERE, "-o", name)
    result = earlybird("fit", "plain", "cold", "-o", "profile.json", check=False)
    refused(result, "measured in several ways", "plain with defaults", "cold with off_cache default")
    fitted = earlybird("fit", "cold", "-o", "profile.json")
    assert "same buffer again" not in fitted.stderr
    assert "measured with buffers off-cache and off_cache default: messages" in fitted.stderr


def test_the_statistic_is_shown_and_kept_in_the_json_of_a_comparison(earlybird, tmp_path):
    earlybird("import", "osu", RECORDED / "osu_allreduce-fz.txt", *WHERE, "--ranks", "2", "-o", "run")
    shown = earlybird("show", "run").stdout
    assert "values: median over iterations (mean over ranks), mean over iterations of the slowest" in shown
    points = json.loads(earlybird("show", "run", "--json").stdout)["points"]
    assert {one["statistic"] for one in points} == {"median", "slowest_rank_mean"}
    found = json.loads(earlybird("compare", "run", "run", "--json").stdout)
    assert {(one["quantity"], one["statistic"]) for one in found["changes"]} == {
        ("mean_over_ranks", "median"), ("completion", "slowest_rank_mean"),
    }  # fmt: skip


@pytest.mark.parametrize("date", ["Sat Nov 28 10:00:00 4294967295", "Sat Nov 28 99:00:00 2026", "no date"])
def test_a_date_that_is_none_is_not_known(date):
    assert date_in("# Date *: ", f"# Date : {date}") is None
