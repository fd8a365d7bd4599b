"""Makes the two small request files of configs/peers-smoke.toml from this repository's own files.

Usage: python configs/requests/make.py

Nobody asked these requests and no model answered them: they are there so that `ladder peers` can be tried,
and tested, without any other data. Edits repeat most of a file, as answers of coding models do; quotations
pick sentences out of a text. Not for figures.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EDITED = ("tokens", "check", "types", "platform", "clock", "hash")
WORDS = ("draft", "tree", "tokens", "history", "upstream", "server")
MODEL = "none: made by configs/requests/make.py"


def edits() -> Iterator[dict[str, object]]:
    """A name is changed in a header; then the lines that have it are asked for."""
    for name in EDITED:
        text = (ROOT / "native" / "base" / f"{name}.hpp").read_text(encoding="utf-8")
        old = max(re.findall(r"\b[a-z]+_[a-z_]+\b", text), key=lambda word: (text.count(word), word))
        new = f"{old}_renamed"
        changed = re.sub(rf"\b{old}\b", new, text)
        prompt = f"[SYSTEM]\nYou edit C++.\n[USER]\nCall `{old}` `{new}` in this file:\n{text}\n[ASSISTANT]\n"
        yield request("edits", name, 1, prompt, changed)
        lines = "\n".join(line for line in changed.splitlines() if new in line)
        delta = f"\n[USER]\nShow the lines that have `{new}`.\n[ASSISTANT]\n"
        yield request("edits", name, 2, delta, lines, prompt_is_delta=True)


def quotations() -> Iterator[dict[str, object]]:
    """The sentences of a text that have a word."""
    text = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")
    sentences = re.split(r"(?<=[.:])\s+", text)
    for word in WORDS:
        found = " ".join(sentence for sentence in sentences if word in sentence)
        prompt = f"[USER]\n{text}\nQuote the sentences that have `{word}`.\n[ASSISTANT]\n"
        yield request("quotations", word, 1, prompt, found)


def request(
    workload: str, session: str, turn: int, prompt: str, response: str, **more: object
) -> dict[str, object]:
    """One line."""
    line = {"workload": workload, "session": session, "turn": turn, "prompt": prompt, "response": response}
    return {**line, "model": MODEL, **more}


def main() -> None:
    """Write both files."""
    for name, lines in (("edits", edits()), ("quotations", quotations())):
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (Path(__file__).parent / f"{name}.jsonl").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
