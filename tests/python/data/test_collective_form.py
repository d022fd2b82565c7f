"""Forms of collectives in a profile: those of earlier versions load."""

import json
from pathlib import Path

from earlybird.data.collective_form import collective_form_from_json

EXAMPLE = Path(__file__).parents[3] / "examples" / "collectives" / "profile.json"


def test_a_form_with_the_key_of_an_earlier_version_loads():
    form = json.loads(EXAMPLE.read_text())["forms"][0]
    present, earlier = (
        collective_form_from_json(form | {"parameters": form["parameters"] | {name: 1510.0}})
        for name in ("burst_bytes", "swift_bytes")
    )
    assert earlier.to_json() == present.to_json()
    assert earlier.parameters.burst_bytes == 1510.0
