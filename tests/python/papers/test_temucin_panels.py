"""The panels of Temucin et al. 2022: the same partitions look the same in all of them."""

from earlybird.papers.temucin.panels import panel_figures
from earlybird.present.subjects.partitioned.view import partitioned_metrics
from tests.python.present.test_partitioned import material, samples


def test_a_number_of_partitions_has_its_color_in_all_panels():
    without = [samples(partitions=count, noise="none") for count in (1, 4, 16)]
    noisy = [samples(partitions=count, noise="uniform") for count in (4, 16)]
    looks = {}
    for figure in panel_figures(partitioned_metrics(material(*without, *noisy))):
        for trace in figure.data:
            looks.setdefault(trace["name"], set()).add((trace["line"]["color"], trace["marker"]["symbol"]))
    counts = ("1 partition", "4 partitions", "16 partitions")
    assert all(len(same) == 1 for same in looks.values())
    of_partitions = [looks[f"{count}, libearlybird"] for count in counts]
    assert len(set.union(*of_partitions)) == len(counts)
