from __future__ import annotations

import json

from situate.files.json_bytes import json_bytes
from tests.report.handmade import HOSTILE


def test_values_come_back_as_they_were() -> None:
    value = {"names": list(HOSTILE), "seconds": 0.1 + 0.2, "bytes": 2**53}
    assert json.loads(json_bytes(value)) == value


def test_no_script_element_can_be_closed_from_within() -> None:
    assert b"</" not in json_bytes({"</script>": "</SCRIPT>"})
