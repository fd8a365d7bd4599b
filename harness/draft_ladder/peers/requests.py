"""Requests to replay: prompts and the responses that models gave, read from JSONL and turned into tokens.

A line holds workload, session, prompt and response, and `prompt_is_delta: true` where the prompt is only
what came after the session's last response. Lines of a session follow each other. A file may be compressed
with zstandard.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import zstandard

from draft_ladder.base.artifacts import Artifact, Made, Store
from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import content_key, open_regular, sha256_file
from draft_ladder.data.tokenizers import Tokenizer

FORMAT = 1
LINE_BYTES_MAX = 64 << 20
TEXT_FIELDS = ("workload", "session", "prompt", "response")


class RequestText(NamedTuple):
    """One line: who asks, what, and what was answered."""

    session: str
    continues: bool  # the prompt is what came after the session's last response
    prompt: str
    response: str


class RequestShape(NamedTuple):
    """One request as tokens: where they lie is the sum of those before it."""

    session: int
    continues: bool
    n_prompt: int
    n_response: int


@dataclass(frozen=True)
class RequestTokens:
    """All requests of one workload as tokens: a token file, and how it is divided."""

    workload: str
    tokens: Path
    sha256: str  # of the token file and its division
    vocab_size: int
    requests: tuple[RequestShape, ...]

    @property
    def n_response(self) -> int:
        """Tokens of all responses."""
        return sum(request.n_response for request in self.requests)


def read_requests(path: Path) -> tuple[str, list[RequestText]]:
    """The workload's name and its requests, in the file's order. InputError names the file and the line."""
    workload = ""
    requests: list[RequestText] = []
    done: set[str] = set()
    for number, line in _lines(path):
        where = f"{path}: line {number}"
        fields = _fields(line, where)
        if workload and fields["workload"] != workload:
            raise InputError(
                where, f"is of workload {fields['workload']!r}, not {workload!r}", "one file each"
            )
        workload = fields["workload"]
        session, continues = fields["session"], bool(fields.get("prompt_is_delta", False))
        last = requests[-1].session if requests else None
        if session != last:
            if session in done:
                remedy = "keep the lines of a session together"
                raise InputError(where, f"session {session!r} came before and ended", remedy)
            if continues:
                remedy = "give its first prompt whole, without prompt_is_delta"
                raise InputError(where, f"session {session!r} begins with a delta", remedy)
            done.add(session)
        requests.append(RequestText(session, continues, fields["prompt"], fields["response"]))
    if not requests:
        raise InputError(path, "holds no request", "give a line of JSON a request")
    return workload, requests


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    with open_regular(path) as file:
        reader: Any = zstandard.ZstdDecompressor().stream_reader(file) if path.suffix == ".zst" else file
        try:
            for number, line in enumerate(io.BufferedReader(reader), start=1):
                if len(line) > LINE_BYTES_MAX:
                    raise InputError(f"{path}: line {number}", f"is {len(line)} bytes long", "shorten it")
                if line.strip():
                    yield number, line
        except zstandard.ZstdError as error:
            raise InputError(path, f"is not sound zstandard data ({error})", "compress it again") from error


def _fields(line: bytes, where: str) -> dict[str, Any]:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(where, f"is not JSON ({error})", "correct or remove the line") from error
    if not isinstance(fields, dict):
        raise InputError(where, "is not a JSON object", "correct or remove the line")
    for name in TEXT_FIELDS:
        if name not in fields:
            raise InputError(where, f"has no field {name!r}", "add it or remove the line")
        if not isinstance(fields[name], str):
            raise InputError(where, f"field {name!r} is no text", "correct it or remove the line")
    if not fields["response"]:
        raise InputError(where, "has an empty response", "remove the line")
    if not isinstance(fields.get("prompt_is_delta", False), bool):
        raise InputError(where, "field 'prompt_is_delta' is neither true nor false", "correct it")
    return fields


def tokenize_requests(
    path: Path, tokenizer: Tokenizer, cache: Path, max_response_tokens: int | None = None
) -> RequestTokens:
    """The file's requests as tokens, from the cache if they were made before.

    `max_response_tokens` takes whole sessions from the front until their responses come to that many tokens.
    """
    file_sha256 = sha256_file(path)

    def make(target: Path) -> Made:
        workload, texts = read_requests(path)
        shapes, tokens = _encode(path, texts, tokenizer, max_response_tokens)
        target.write_bytes(tokens)
        return Made({"workload": workload, "vocab_size": tokenizer.vocab_size, "requests": shapes})

    stored = Store(cache).get(
        Artifact(
            kind="requests",
            folder="requests",
            suffix=".tok",
            identity={
                "format": FORMAT,
                "file": file_sha256,
                "tokenizer": tokenizer.sha256,
                "max_response_tokens": max_response_tokens,
            },
            make=make,
            inputs={"requests": file_sha256, "tokenizer": tokenizer.sha256},
            parameters={"max_response_tokens": max_response_tokens},
        )
    )
    facts = stored.manifest.facts
    shapes = tuple(RequestShape(*shape) for shape in facts["requests"])
    digest = content_key({"tokens": stored.sha256, "requests": shapes})
    return RequestTokens(facts["workload"], stored.path, digest, facts["vocab_size"], shapes)


def _encode(
    path: Path, texts: list[RequestText], tokenizer: Tokenizer, max_response_tokens: int | None
) -> tuple[list[RequestShape], bytes]:
    shapes: list[RequestShape] = []
    parts: list[bytes] = []
    sessions: dict[str, int] = {}
    taken = 0
    for text in texts:
        if text.session not in sessions and max_response_tokens is not None and taken >= max_response_tokens:
            break
        session = sessions.setdefault(text.session, len(sessions))
        prompt, response = tokenizer.encode(text.prompt), tokenizer.encode(text.response)
        if len(response) == 0:
            raise InputError(path, f"request {len(shapes) + 1}: its response has no token", "remove the line")
        shapes.append(RequestShape(session, text.continues, len(prompt), len(response)))
        parts += [np.asarray(prompt, dtype="<i4").tobytes(), np.asarray(response, dtype="<i4").tobytes()]
        taken += len(response)
    return shapes, b"".join(parts)
