"""Text to token file: int32 little-endian ids and nothing else, with a manifest beside it.

How a text is cut. A text is tokenised in segments of about SEGMENT_BYTES, each ending at the first place
after that size where the tokenizer says a text may be cut (`Tokenizer.cut_pattern`). The places depend on
the text alone, so the tokens do not depend on the number of jobs; for Tekken they are proven not to change
the tokens, so the result equals that of tokenising the text in one piece. A text without such a place is
cut at a character before SEGMENT_LIMIT_BYTES; the manifest counts that as `forced_cuts`.

Segments are also what is reused: beside each token file lies a table with the digests of its segments'
texts, and a segment that any token file of the same tokenizer holds already is copied, not tokenised. So
the corpora of 25 to 541 MB of one source cost little more than the largest alone.

Bytes that are not UTF-8 become U+FFFD, one for each faulty sequence; they are counted and reported. CRLF,
NUL and a missing final line feed are kept as they are.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from draft_ladder.base.artifacts import Artifact, Made, Store
from draft_ladder.base.errors import InputError
from draft_ladder.base.foreign import head_of, refuse_foreign, refuse_other_numbers, refuse_text
from draft_ladder.base.manifests import (
    Progress,
    ProgressCallback,
    load_manifest,
    manifest_path,
    replacing_artifact,
    sha256_file,
    stale_remedy,
)
from draft_ladder.data.input_files import InputFile, input_file
from draft_ladder.data.tokenizers import Tokenizer

SEGMENT_BYTES = 512 << 10
# Below the million characters at which the pattern matcher of tiktoken gives up on one run of white space.
SEGMENT_LIMIT_BYTES = 768 << 10
SEGMENTS_SUFFIX = ".segments.json"
CUT_RULE = 1  # raised when segments would come out differently
TOKEN_BYTES = 4
CHECK_BLOCK_TOKENS = 1 << 22

TokenArray = npt.NDArray[np.int32]


@dataclass(frozen=True)
class TokenFile:
    """A token file in the cache. `facts` as in its manifest: counts of replaced sequences, CRLF, NUL,
    forced cuts.
    """

    path: Path
    sha256: str
    n_tokens: int
    text_sha256: str
    tokenizer: str
    tokenizer_sha256: str
    vocab_size: int
    facts: dict[str, int | bool] = field(default_factory=dict)


class Segment(NamedTuple):
    """A piece of text; `forced` says that it ends where no safe place was found."""

    data: bytes
    forced: bool


class SegmentRow(NamedTuple):
    """One line of the segment table: digests of a piece of text and its tokens, and their number."""

    text_sha256: str
    n_tokens: int
    tokens_sha256: str


def split_text(
    blocks: Iterable[bytes],
    tokenizer: Tokenizer,
    segment_bytes: int = SEGMENT_BYTES,
    limit_bytes: int = SEGMENT_LIMIT_BYTES,
) -> Iterator[Segment]:
    """Cut a text, given in blocks of any size, into segments; joined they are the text again."""
    buffer = b""
    for block in blocks:
        buffer += block
        # What decides about a cut must not depend on where a block ends: wait until all of it is there.
        while len(buffer) >= limit_bytes + 8:
            end, forced = _segment_end(buffer, tokenizer, segment_bytes, limit_bytes)
            yield Segment(buffer[:end], forced)
            buffer = buffer[end:]
    while buffer:
        end, forced = _segment_end(buffer, tokenizer, segment_bytes, limit_bytes)
        yield Segment(buffer[:end], forced)
        buffer = buffer[end:]


def _segment_end(
    buffer: bytes, tokenizer: Tokenizer, segment_bytes: int, limit_bytes: int
) -> tuple[int, bool]:
    """Length of the first segment of `buffer`, which holds the limit and 8 bytes more, or the text's end."""
    match = tokenizer.cut_pattern.search(buffer, segment_bytes)
    if match and match.end() <= limit_bytes:
        return match.end(), False
    if len(buffer) <= limit_bytes:
        return len(buffer), False
    end = limit_bytes
    while end > limit_bytes - 3 and 0x80 <= buffer[end] < 0xC0:  # not inside a character
        end -= 1
    return end, True


class _Encoded(NamedTuple):
    tokens: TokenArray | None  # None: `donor` has them
    row: SegmentRow
    replaced: int
    data: bytes
    forced: bool


class _KnownSegments:
    """Segments that token files in the cache hold already, by the digest of their text."""

    def __init__(self, directory: Path, tokenizer: Tokenizer) -> None:
        self._where: dict[str, tuple[Path, int, SegmentRow]] = {}
        for table in sorted(directory.glob(f"*{SEGMENTS_SUFFIX}")):
            rows = _read_table(table, tokenizer.sha256)
            path = table.with_name(table.name.removesuffix(SEGMENTS_SUFFIX))
            offset = 0
            for row in rows:
                self._where.setdefault(row.text_sha256, (path, offset, row))
                offset += row.n_tokens

    def get(self, text_sha256: str) -> tuple[TokenArray, SegmentRow] | None:
        """The tokens of that text, read back and checked, or None."""
        found = self._where.get(text_sha256)
        if found is None:
            return None
        path, offset, row = found
        try:
            with path.open("rb") as file:
                file.seek(offset * TOKEN_BYTES)
                raw = file.read(row.n_tokens * TOKEN_BYTES)
        except OSError:
            return None
        if hashlib.sha256(raw).hexdigest() != row.tokens_sha256:
            return None
        return np.frombuffer(raw, dtype="<i4"), row


def _read_table(path: Path, tokenizer_sha256: str) -> list[SegmentRow]:
    """The rows of a segment table, none if it is not of this tokenizer and cut rule or cannot be read."""
    try:
        table = json.loads(path.read_bytes())
        if table["tokenizer_sha256"] != tokenizer_sha256 or table["cut_rule"] != CUT_RULE:
            return []
        return [SegmentRow(str(text), int(n), str(tokens)) for text, n, tokens in table["segments"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []  # only an aid: without it the text is tokenised again


def _encode(segment: Segment, tokenizer: Tokenizer, known: _KnownSegments) -> _Encoded:
    """Tokens of one segment, from those known if they are. Runs in several threads at once."""
    data = segment.data
    try:
        text, replaced = data.decode(), 0
    except UnicodeDecodeError:
        text = data.decode(errors="replace")
        # A U+FFFD that the text itself holds is no replacement; its bytes can mean nothing else.
        replaced = text.count("\ufffd") - data.count(b"\xef\xbf\xbd")
    digest = hashlib.sha256(data).hexdigest()
    found = known.get(digest)
    if found:
        return _Encoded(found[0], found[1], replaced, data, segment.forced)
    tokens = tokenizer.encode(text)
    row = SegmentRow(digest, len(tokens), hashlib.sha256(tokens.astype("<i4").tobytes()).hexdigest())
    return _Encoded(tokens, row, replaced, data, segment.forced)


def _encode_in_order(
    segments: Iterable[Segment], tokenizer: Tokenizer, known: _KnownSegments, jobs: int
) -> Iterator[_Encoded]:
    """Encode on `jobs` threads (the tokenizers release the GIL), in the order of the text, a bounded number
    ahead.
    """
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        waiting: deque[Future[_Encoded]] = deque()
        try:
            for segment in segments:
                waiting.append(pool.submit(_encode, segment, tokenizer, known))
                if len(waiting) > 2 * jobs:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


class _Tokenising:
    """One run over a text: writes tokens, keeps the digests, counts what the manifest reports."""

    def __init__(
        self, file: InputFile, total_bytes: int, tokenizer: Tokenizer, progress: ProgressCallback | None
    ) -> None:
        self.file, self.tokenizer, self.progress = file, tokenizer, progress
        self.text, self.total_bytes = file.path, total_bytes
        self.text_digest, self.token_digest = hashlib.sha256(), hashlib.sha256()
        self.rows: list[SegmentRow] = []
        self.text_bytes = self.n_tokens = self.replaced = self.crlf = self.nul = self.forced = 0
        self.last_byte = b""
        self.started = time.monotonic()

    def write(self, file: BinaryIO, known: _KnownSegments, jobs: int, text_sha256: str) -> None:
        """Tokenise the text into `file`; InputError if it is not the text of that digest."""
        segments = split_text(self.file.unpacked(), self.tokenizer)
        try:
            self._add_around(file, self.tokenizer.prefix)
            for encoded in _encode_in_order(segments, self.tokenizer, known, jobs):
                self._add(file, encoded)
            self._add_around(file, self.tokenizer.suffix)
        except ValueError as error:
            where = f"{self.text}: byte {self.text_bytes} and after"
            raise InputError(
                where, f"cannot be tokenised: {error}", "remove that passage from the text"
            ) from error
        grown = self.text.stat().st_size != self.file.size
        if grown or self.text_digest.hexdigest() != text_sha256:
            raise InputError(
                self.text, "changed while it was read", "wait until nothing writes to it, then run again"
            )

    def _add_around(self, file: BinaryIO, tokens: tuple[int, ...]) -> None:
        """BOS or EOS: tokens of no text. A segment without text keeps the table's offsets right."""
        if tokens:
            ids = np.array(tokens, dtype=np.int32)
            digests = [hashlib.sha256(data).hexdigest() for data in (b"", ids.astype("<i4").tobytes())]
            self._add(file, _Encoded(ids, SegmentRow(digests[0], len(ids), digests[1]), 0, b"", False))

    def _add(self, file: BinaryIO, encoded: _Encoded) -> None:
        assert encoded.tokens is not None
        raw = encoded.tokens.astype("<i4", copy=False).tobytes()
        file.write(raw)
        self.token_digest.update(raw)
        self.text_digest.update(encoded.data)
        self.rows.append(encoded.row)
        self.n_tokens += encoded.row.n_tokens
        self.replaced += encoded.replaced
        self.forced += encoded.forced
        self.nul += encoded.data.count(b"\0")
        self.crlf += encoded.data.count(b"\r\n")
        self.crlf += self.last_byte == b"\r" and encoded.data[:1] == b"\n"
        self.last_byte = encoded.data[-1:] or self.last_byte
        self.text_bytes += len(encoded.data)
        if self.progress:
            elapsed = time.monotonic() - self.started
            self.progress(Progress("tokens", self.text_bytes, self.total_bytes, elapsed, self.n_tokens))

    def made(self) -> Made:
        """What its manifest says, and the table of its segments."""
        facts = {
            "n_tokens": self.n_tokens,
            "text_bytes": self.text_bytes,
            "replaced_sequences": self.replaced,
            "nul_bytes": self.nul,
            "crlf_lines": self.crlf,
            "final_line_feed": self.last_byte == b"\n",
            "forced_cuts": self.forced,
        }
        table = {
            "tokenizer_sha256": self.tokenizer.sha256,
            "cut_rule": CUT_RULE,
            "segments": [list(row) for row in self.rows],
        }
        return Made(
            facts,
            self.token_digest.hexdigest(),
            {"equals_one_piece": self.tokenizer.cut_is_proven and self.forced == 0},
            {SEGMENTS_SUFFIX: json.dumps(table, allow_nan=False).encode()},
        )


def tokenize_file(
    text: Path,
    tokenizer: Tokenizer,
    cache_dir: Path,
    *,
    text_sha256: str | None = None,
    jobs: int | None = None,
    progress: ProgressCallback | None = None,
    report: Callable[[str], None] | None = None,
    label: str | None = None,
) -> TokenFile:
    """Token file of `text`, plain or compressed, in `cache_dir`/tokens, made now or found there.

    `text_sha256` saves reading the text once when the caller knows its digest (it is checked while
    tokenising). `jobs` defaults to the number of usable cores; it changes nothing but the time. `report`
    gets one line about anything odd in the text (default: stderr), which is called `label` there (default:
    its file's name). Raises InputError for a text that is empty, unreadable or changed meanwhile.
    """
    file = input_file(text)
    expected, size = (text_sha256, file.size) if text_sha256 else file.content

    def make(target: Path) -> Made:
        run = _Tokenising(file, size, tokenizer, progress)
        if run.total_bytes == 0:
            raise InputError(text, "is empty", "name a text with at least one line")
        known = _KnownSegments(target.parent, tokenizer)
        with target.open("wb") as out:
            run.write(out, known, jobs or usable_cores(), expected)
        return run.made()

    artifact = Artifact(
        kind="tokens",
        folder="tokens",
        suffix=".tok",
        identity={"text": expected, "tokenizer": tokenizer.sha256, "cut_rule": CUT_RULE},
        make=make,
        inputs={"text": expected, "tokenizer": tokenizer.sha256},
        parameters={
            "tokenizer": tokenizer.name,
            "vocab_size": tokenizer.vocab_size,
            "cut_rule": CUT_RULE,
            "segment_bytes": SEGMENT_BYTES,
            "around": [list(tokenizer.prefix), list(tokenizer.suffix)],
        },
        versions=tokenizer.versions,
    )
    result = load_token_file(Store(cache_dir).get(artifact).path)
    for line in describe_oddities(result.facts):
        (report or _to_stderr)(f"{label or text.name}: {line}")
    return result


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr)


def describe_oddities(facts: dict[str, int | bool]) -> list[str]:
    """One line for everything in the text that its reader may not expect; none for clean text."""
    lines = []
    if facts.get("replaced_sequences"):
        lines.append(f"{facts['replaced_sequences']} byte sequences are not UTF-8 and were read as U+FFFD")
    if facts.get("nul_bytes"):
        lines.append(f"{facts['nul_bytes']} NUL bytes were kept")
    if facts.get("crlf_lines"):
        lines.append(f"{facts['crlf_lines']} CRLF line ends were kept")
    if facts.get("final_line_feed") is False:
        lines.append("no line feed at the end; none was added")
    if facts.get("forced_cuts"):
        lines.append(f"{facts['forced_cuts']} passages without blanks or line ends were cut to be tokenised")
    return lines


def usable_cores() -> int:
    """Cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


def load_token_file(path: Path) -> TokenFile:
    """A token file with its manifest. Raises InputError where either is missing or they do not belong
    together.
    """
    manifest = load_manifest(path, "tokens")
    size = path.stat().st_size if path.is_file() else -1
    if size != manifest.bytes:
        found = f"is {size} bytes where its manifest says {manifest.bytes}" if size >= 0 else "is missing"
        raise InputError(path, found, "tokenise the text again")
    try:
        return TokenFile(
            path=path,
            sha256=manifest.sha256,
            n_tokens=manifest.bytes // TOKEN_BYTES,
            text_sha256=manifest.inputs["text"],
            tokenizer=str(manifest.parameters["tokenizer"]),
            tokenizer_sha256=manifest.inputs["tokenizer"],
            vocab_size=int(manifest.parameters["vocab_size"]),
            facts=manifest.facts,
        )
    except KeyError as error:
        raise InputError(
            manifest_path(path), f"{error.args[0]}: is missing", "tokenise the text again"
        ) from error


def open_tokens(path: Path, vocab_size: int | None = None) -> TokenArray:
    """The tokens of a file as a read-only int32 array of shape (n_tokens,), mapped from the file and checked.

    A `.npy` file of integers is read as such, whatever their width. Ids must lie in [0, `vocab_size`);
    without one, in that of the manifest beside the file, else they must not be negative. Raises InputError
    naming the byte offset of the first id that does not, or of an incomplete token, for a file that is not
    the one its manifest describes, and for one that is plainly of another form: of a known format, text,
    wider or narrower numbers.
    """
    refuse_foreign(path, "tokens", "numpy")
    if is_numpy(path):
        return _numpy_tokens(path, vocab_size)
    vouched = manifest_path(path).is_file()
    if not vouched:
        refuse_text(path)
    size = path.stat().st_size
    if size % TOKEN_BYTES:
        raise InputError(
            path,
            f"byte {size - size % TOKEN_BYTES}: the last token has {size % TOKEN_BYTES} of 4 bytes",
            "write whole int32 values",
        )
    if size == 0:
        return np.empty(0, dtype=np.int32)
    if vocab_size is None and vouched:
        vocab_size = load_token_file(path).vocab_size
    tokens: TokenArray = np.memmap(path, dtype="<i4", mode="r")
    if not vouched:
        refuse_other_numbers(path, tokens)
    _check_ids(path, tokens, vocab_size)
    if vouched and sha256_file(path) != load_manifest(path).sha256:
        raise InputError(path, "is not the file its manifest describes", stale_remedy(path))
    return tokens


def is_numpy(path: Path) -> bool:
    """Whether the file is numpy's, by its content."""
    return head_of(path).startswith(b"\x93NUMPY")


def _numpy_tokens(path: Path, vocab_size: int | None) -> TokenArray:
    """The ids of a .npy file, checked and narrowed to int32."""
    remedy = "save one row of integers, as `np.save(path, ids)` does"
    try:
        ids = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # its parser of headers raises whatever Python's own parser does
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(path, f"cannot be read as a numpy file ({reason})", remedy) from error
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise InputError(path, f"holds {ids.dtype} of shape {ids.shape}", remedy)
    _check_ids(path, ids, vocab_size)
    narrowed: TokenArray = ids.astype(np.int32)
    return narrowed


def _check_ids(path: Path, tokens: npt.NDArray[Any], vocab_size: int | None) -> None:
    limit = 2**31 if vocab_size is None else vocab_size
    for start in range(0, len(tokens), CHECK_BLOCK_TOKENS):
        block = tokens[start : start + CHECK_BLOCK_TOKENS]
        if int(block.min()) >= 0 and int(block.max()) < limit:
            continue
        index = int(np.flatnonzero((block < 0) | (block >= limit))[0])
        raise InputError(
            path,
            f"byte {(start + index) * tokens.itemsize}: token {block[index]} is outside [0, {limit})",
            "tokenise the text with the tokenizer that this vocabulary size belongs to",
        )


@contextlib.contextmanager
def raw_tokens(path: Path, vocab_size: int | None = None) -> Iterator[Path]:
    """A file of int32 tokens and nothing else, for who reads bytes: `path` itself once it is checked (as by
    open_tokens), or the ids of a .npy file written down for as long as they are needed.
    """
    tokens = open_tokens(path, vocab_size)
    if not is_numpy(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="ladder-") as folder:
        raw = Path(folder, path.name)
        tokens.astype("<i4").tofile(raw)
        yield raw


def write_tokens(path: Path, tokens: Iterable[int]) -> None:
    """Write ids as a token file without a manifest (for tests and by-hand experiments)."""
    with contextlib.suppress(OverflowError):
        content = np.fromiter(tokens, dtype="<i4").tobytes()
        with replacing_artifact(path) as temporary:
            temporary.write_bytes(content)
        return
    raise InputError(path, "a token id does not fit in int32", "use ids from 0 to 2147483647")
