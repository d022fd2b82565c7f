"""Which cells an Eclipse deck has active, and what of a deck is refused because it may change that."""

import numpy as np
import pytest

from earlybird.data.errors import InputError
from earlybird.patterns.actnum import parse_actnum
from earlybird.patterns.deck import read_deck

BOX_OF_4 = "BOX\n 1 2 1 2 2 2 /\n"
FULL = "SPECGRID\n 4 4 2 1 F /\nACTNUM\n 32*1 /\n"


def mask(text, tmp_path, dims=None):
    return parse_actnum(text, tmp_path / "deck", dims)


def layers(text, tmp_path, dims=None):
    """The number of active cells of each layer."""
    return mask(text, tmp_path, dims).sum(axis=(1, 2)).tolist()


@pytest.mark.parametrize(
    ("text", "active"),
    [
        (FULL, [16, 16]),
        (FULL + "PORO\n 32*0.2 /\nACTNUM\n 16*1 16*0 /\n", [16, 0]),
        (FULL + "EQUALS\n 'ACTNUM' 0 1 4 1 4 2 2 /\n/\n", [16, 0]),
        (FULL + "EQUALS\n PORO 0 1 4 1 4 1 1 / of another array\n ACTNUM 0 1 2 3 4 2 2 /\n/\n", [16, 12]),
        (FULL + "EQUALS\n ACTNUM 0 1 4 1 4 2 2 /\n ACTNUM 1 /\n/\n", [16, 16]),
        (FULL + "EQUALS\n PORO 0.2 1 1 1 1 1 1 /\n ACTNUM 0 /\n/\n", [15, 16]),
        (FULL + "EQUALS\n ACTNUM 0 4* 2 2 /\n PORO 0.2 1 4 1 2 1 1 /\n 'actnum' 0 6* /\n/\n", [8, 0]),
        (FULL + "EQUALS\n PORO 1 1 1 1 1 1 1 /\n NTG 1 /\n/\nMULTIPLY\n ACTNUM 0 /\n/\n", [0, 0]),
        (FULL + "MULTIPLY\n PORO 2 1 2 /\n PORO 2 1* 2 /\n ACTNUM 0 1 1 1 1 1 1 /\n/\n", [15, 16]),
        (FULL + "EQUALS\n ACTNUM 0 4* 2 2 /\n/\n", [16, 0]),
        (FULL + "EQUALS\n ACTNUM 0 6* /\n/\nADD\n 'ACTNUM ' 1 3*1 4 2*1 /\n/\n", [4, 0]),
        (FULL + BOX_OF_4 + "EQUALS\n ACTNUM 0 /\n/\nENDBOX\n", [16, 12]),
        (FULL + BOX_OF_4 + "ACTNUM\n 4*0 /\nENDBOX\nMULTIPLY\n ACTNUM 0. 1 1 1 4 1 1 /\n/\n", [12, 12]),
        (FULL + "COPY\n ACTNUM FIPNUM /\n PORO PORV /\n/\n", [16, 16]),
        (FULL + "RPTGRID\n PORO\n ACTNUM\n /\nRPTGRID\n ACTNUM PORO /\n", [16, 16]),
        (FULL + "SKIP\nACTNUM\n 32*0 /\nENDSKIP\nSKIP300\nPORO\n 1 /\nENDSKIP\n", [16, 16]),
        (FULL + "END\nACTNUM\n 32*0 /\n", [16, 16]),
        ("TITLE\nACTNUM 5\n" + FULL, [16, 16]),
        ("-- EQUALS ACTNUM\n" + FULL.replace("\n", "\r\n").replace(" ", "\t"), [16, 16]),
        ("RUNSPEC\nDIMENS\n 4 4 2 /\nMETRIC\nGRID\n" + FULL.lower() + "PROPS\nADD\n SWL 0 /\n/\n", [16, 16]),
        # All cells are active at first.
        ("DIMENS\n 4 4 2 /\nEQUALS\n ACTNUM 0 1 4 1 4 1 1 /\n/\n", [0, 16]),
        ("BOX\n 1 4 1 4 1 1 /\nACTNUM\n 16*0 /\nENDBOX\nSPECGRID\n 4 4 2 /\n", [0, 16]),
        ("MAPUNITS\n METRES /\nCOORD\n 3*1.5E3\n -2 /\nSCHEDULE\nACTNUM\n" + FULL, None),
    ],
)  # fmt: skip
def test_keywords_change_the_mask_in_their_order(text, active, tmp_path):
    if active is None:
        with pytest.raises(InputError, match="neither SPECGRID nor DIMENS"):
            layers(text, tmp_path)
    else:
        assert layers(text, tmp_path) == active


def test_operations_reach_the_cells_of_their_box(tmp_path):
    expected = np.ones((2, 4, 4), dtype=bool)
    expected[1, 2:4, 0:2] = False
    assert (mask(FULL + "EQUALS\n ACTNUM 0 1 2 3 4 2 2 /\n/\n", tmp_path) == expected).all()
    boxed = FULL + "BOX\n 1 2 3 4 2 2 /\nACTNUM\n 0 1 1 0 /\n"
    expected[1, 2:4, 0:2] = [[False, True], [True, False]]
    assert (mask(boxed, tmp_path) == expected).all()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("COPY\n FIPNUM ACTNUM /\n/\n", "line 6: the keyword COPY changes ACTNUM"),
        ("OPERATE\n ACTNUM 1 4 1 4 1 2 MULTX PORO 0.5 /\n/\n", "OPERATE changes ACTNUM"),
        ("EQUALREG\n 'ACTNUM' 0 1 F /\n/\n", "EQUALREG changes ACTNUM"),
        ("MAXVALUE\n ACTNUM 0 /\n/\n", "MAXVALUE changes ACTNUM"),
        ("ADD\n ACTNUM 1 /\n/\n", "line 6: ADD makes an ACTNUM of 2"),
        ("EQUALS\n ACTNUM 2 /\n/\n", "EQUALS makes an ACTNUM of 2"),
        ("EQUALS\n ACTNUM nan /\n/\n", "EQUALS makes an ACTNUM of nan"),
        ("EQUALS\n ACTNUM /\n/\n", "EQUALS has no number"),
        ("EQUALS\n ACTNUM 0 1 4 1 4 1 3 /\n/\n", "'3' of the box is not 1 to 2, the cells along Z"),
        ("EQUALS\n ACTNUM 0 3 2 1 4 1 1 /\n/\n", "ends before it begins"),
        ("EQUALS\n ACTNUM 0 1 4 1 4 1 1 1 /\n/\n", "a box has 6 numbers"),
        ("EQUALS\n ACTNUM 0 1 2 1 4 1 1 /\n ACTNUM 0 4* 2 2 /\n/\n", "line 7: number 2 of the box"),
        ("EQUALS\n PORO 1 1 2 1 4 1 1 /\n ACTNUM 0 4* 2 2 /\n/\n", "line 7: number 2 of the box"),
        ("EQUALS\n PORO 1 1 9 1 4 1 1 /\n ACTNUM 0 /\n/\n", "line 6: '9' of the box is not 1 to 4"),
        ("EQUALS\n ACTNUM 0 1 2 1 4 1 1 /\n", "the data of EQUALS does not end"),
        ("EQUALS\n 'ACTNUM 0 /\n/\n", "the quote .* is not closed"),
        ("NEWFLAGS\n PORO ACTNUM /\n", "line 6: ACTNUM is in the data of the keyword NEWFLAGS"),
        ("PORO\n 32*0.2\nACTNUM\n 32*0 /\n", "ACTNUM is in the data of the keyword PORO"),
        ("PORO\n 32*0.2\nBOX\n 1 4 1 4 1 1 /\n", "BOX comes before the data of the keyword PORO has ended"),
        ("BOX\n 1 4 1 4 1 1 /\nACTNUM\n 32*1 /\n", "line 7: 32 values for ACTNUM, but 4x4x1 cells are 16"),
        ("DIMENS\n 4 2 4 /\n", "line 5: DIMENS is 4x2x4, but SPECGRID .* says 4x4x2"),
        ("PROPS\nEQUALS\n ACTNUM 0 /\n/\n", "changes ACTNUM in section PROPS"),
        ("EDIT\nACTNUM\n 32*0 /\n", "changes ACTNUM in section EDIT"),
        ("CARFIN\n LGR1 1 1 1 1 1 1 2 2 2 /\nENDFIN\n", "the keyword CARFIN refines cells"),
        ("GDFILE\n 'X.EGRID' /\n", "GDFILE takes data from a binary file"),
        ("SKIP100\nACTNUM\n 32*0 /\nENDSKIP\n", "SKIP100 encloses ACTNUM"),
        ("SKIP\n", "SKIP has no ENDSKIP"),
        ("NUMRES\n 2 /\n", "NUMRES is 2"),
        ("INCLUDE\n 'none.inc' /\n", "line 6?.*INCLUDE none.inc: the file .* does not exist"),
        ("INCLUDE\n '$DIR/x.inc' /\n", "alias of PATHS"),
        ("INCLUDE\n /\n", "INCLUDE has 0 names"),
    ],
)  # fmt: skip
def test_what_may_change_the_mask_and_is_not_applied_is_refused(text, says, tmp_path):
    with pytest.raises(InputError, match=says) as refused:
        mask(FULL + text, tmp_path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("SPECGRID\n 4 4 2 1 T /\n", "the type T"),
        ("SPECGRID\n 4 4 2 2 F /\n", "SPECGRID has 2 reservoirs"),
        ("SPECGRID\n 4 4 /\n", "must begin with three whole numbers"),
        ("DIMENS\n 4 0 4 /\n", "must begin with three whole numbers"),
        ("DUALPORO\n", "DUALPORO makes two cells of each"),
    ],
)
def test_a_grid_that_is_not_cartesian_is_refused(text, says, tmp_path):
    with pytest.raises(InputError, match=says):
        mask(text + "ACTNUM\n 32*1 /\n", tmp_path, (4, 4, 2))


def test_included_files_are_read_where_they_stand(tmp_path):
    (tmp_path / "grid").mkdir()
    (tmp_path / "grid" / "actnum.inc").write_text("ACTNUM\n 32*1 /\nENDINC\nACTNUM\n 32*0 /\n")
    # The folder is that of the deck also for what an included file includes.
    (tmp_path / "all.inc").write_text("INCLUDE\n 'grid/actnum.inc' /\n")
    deck = "DIMENS\n 4 4 2 /\nINCLUDE\n all.inc /\nEQUALS\n ACTNUM 0 1 4 1 4 1 1 /\n/\n"
    deck += "PROPS\nINCLUDE\n 'none' /\n"
    assert layers(deck, tmp_path) == [0, 16]
    (tmp_path / "all.inc").write_text("INCLUDE\n 'all.inc' /\n")
    with pytest.raises(InputError, match=r"all\.inc line 1: INCLUDE all\.inc includes itself"):
        layers(deck, tmp_path)


def test_keywords_beyond_actnum_are_named_by_line(tmp_path):
    deck = read_deck(FULL + "MINPV\n 500 /\nPINCH\n/\nNNC\n 1 1 1 2 2 2 0.5 /\n/\n", tmp_path / "deck")
    assert [name.split(" (")[0] for name in deck.beyond_actnum] == ["MINPV", "PINCH", "NNC"]
    assert deck.beyond_actnum[0].endswith("deck line 5)")
