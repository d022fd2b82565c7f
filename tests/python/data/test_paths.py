"""The paths of libearlybird in a launch: read from what it printed, and told in parts of its starts."""

from earlybird.data.paths import paths_texts
from earlybird.launch.library_statistics import paths_in

PRINTED = """\
   direct         0         0          0               0
path: of send requests, of which some starts travelled on it; sums of all ranks
bytes of requests partitions   message      ring    direct
           131072         32         4       196         0
          1048576          4        10         0        90
message, ring, direct: starts of send requests of this size on each path; sums of all ranks
     0       300         0
"""


def test_the_starts_on_each_path_are_read_from_the_output():
    rows = paths_in(PRINTED)
    assert [(row["size_bytes"], row["partitions"]) for row in rows] == [(131072, 32), (1048576, 4)]
    assert rows[1]["starts"] == {"message": 10, "ring": 0, "direct": 90}
    assert paths_in("earlybird: no statistics") == []


def test_paths_are_told_in_parts_of_all_starts_of_a_size():
    launch = {"flavour": "mpich", "paths": paths_in(PRINTED)}
    assert paths_texts([launch, launch, {}]) == [
        "128 KiB in 32: message 2%, ring 98%",
        "1 MiB in 4: message 10%, direct 90%",
    ]
    assert paths_texts([launch, launch | {"flavour": "intel"}])[0].startswith("intel 128 KiB in 32: ")
