"""variant.toml: what is wrong with it is said at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from draft_ladder.base.errors import InputError
from draft_ladder.base.variants import find
from runner_kit import add_peer


def test_every_missing_and_unknown_key_is_named_in_one_error(tmp_path: Path) -> None:
    own = add_peer(tmp_path, "peer", "", colour="#123456", kind="beyond")
    text = (own / "variant.toml").read_text()
    kept = [line for line in text.splitlines() if line.split(" ")[0] not in ("rule", "ties", "label")]
    (own / "variant.toml").write_text("\n".join(kept))
    with pytest.raises(InputError) as caught:
        find("peer", tmp_path)
    said = str(caught.value)
    assert all(key in said for key in ("label", "rule", "ties", "colour", "kind", "variant.toml"))


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ({"ties": "maybe"}, "ties"),
        ({"engine": "java"}, "engine"),
        ({"static_format": "frozen"}, "static_format"),
        ({"rule": ""}, "rule"),
        ({"name": "other"}, "name"),
    ],
)
def test_a_wrong_value_is_named_by_its_key(tmp_path: Path, said: dict[str, str], named: str) -> None:
    folder = add_peer(tmp_path, "peer", "", **said)
    if said.get("engine"):
        (folder / "peer.py").write_text("")
    with pytest.raises(InputError, match=named):
        find("peer", tmp_path)


def test_the_folder_is_the_group(tmp_path: Path) -> None:
    add_peer(tmp_path, "peer", "", licence="MIT", source="https://example.org", version="1.2")
    peer = find("peer", tmp_path)
    assert (peer.group, peer.engine, peer.licence) == ("peers", "python", "MIT")
