"""Corpora out of real files: plain, compressed, odd, damaged; standard library; WikiText rows; no network."""

from __future__ import annotations

import gzip
import importlib.util
import lzma
import os
import platform
import socket
import time
from pathlib import Path
from typing import Any

import pytest
import zstandard
from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import Progress, load_manifest, sha256_file
from draft_ladder.data import sources
from draft_ladder.data.corpus import build_corpus, replay_text
from draft_ladder.data.input_files import input_file
from draft_ladder.data.resolve import CorpusSource, default_source, resolve_source
from draft_ladder.data.sources import FilesConfig, Source, stdlib_source
from draft_ladder.data.wikitext import WikitextConfig, hub_problem, rejoin
from pydantic import TypeAdapter, ValidationError

SHARED = Path(os.environ.get("LADDER_SHARED") or Path(__file__).resolve().parents[3] / "shared")
LINES = b"".join(b"line %d of the corpus\n" % number for number in range(3_000))


def files(tmp_path: Path, *train: str, replay: str = "replay.txt", **fields: Any) -> Source:
    if not (tmp_path / "replay.txt").exists():
        (tmp_path / "replay.txt").write_bytes(b"replayed\n")
    config = FilesConfig(source="files", train=list(train), replay=[replay], **fields)
    return resolve_source(config, tmp_path)


def shared_text(name: str) -> Path:
    path = SHARED / "corpus" / name
    if not path.is_file():
        pytest.skip(f"{name} is not there (set LADDER_SHARED to the folder that holds corpus/)")
    return path


def built(tmp_path: Path, source: Source, size_bytes: int, clip: bool = False) -> bytes:
    return build_corpus(source, size_bytes / 1e6, tmp_path / "cache", clip=clip).path.read_bytes()


def test_the_first_bytes_cut_at_a_line_end(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(LINES)
    source = files(tmp_path, "a.txt", label="Lines")
    end_of_second = LINES.index(b"\n", LINES.index(b"\n") + 1) + 1
    assert built(tmp_path, source, end_of_second) == LINES[:end_of_second]
    assert built(tmp_path, source, end_of_second - 1) == LINES[: LINES.index(b"\n") + 1]
    assert built(tmp_path, source, len(LINES)) == LINES
    result = build_corpus(source, 0.05, tmp_path / "cache")
    assert 49_900 < result.bytes <= 50_000
    assert result.sha256 == sha256_file(result.path)
    assert (result.label, result.kind, result.source, result.clipped) == ("Lines", "real", "files", False)
    manifest = load_manifest(result.path, "corpus")
    assert manifest.inputs == {"a.txt": sha256_file(tmp_path / "a.txt")}
    assert str(tmp_path) not in manifest.model_dump_json()


def test_a_size_beyond_the_source_says_how_much_there_is(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(LINES)
    source = files(tmp_path, "a.txt")
    with pytest.raises(InputError, match=rf"0\.07089 MB \({len(LINES)} bytes\), 25 MB"):
        build_corpus(source, 25, tmp_path / "cache")
    assert not list((tmp_path / "cache" / "corpora").glob("*.txt"))
    clipped = [build_corpus(source, size, tmp_path / "cache", clip=True) for size in (25, 541)]
    assert clipped[0].clipped
    assert clipped[0].bytes == len(LINES)
    assert clipped[0].size_mb == len(LINES) / 1e6
    assert clipped[0].sha256 == clipped[1].sha256
    with pytest.raises(InputError, match=f"{len(LINES)} bytes"):  # though a clipped one is in the cache
        build_corpus(source, 25, tmp_path / "cache")
    with pytest.raises(InputError, match=r"^size 0 MB: "):
        build_corpus(source, 0, tmp_path / "cache")


def test_all_compressions_in_sorted_and_given_order(tmp_path: Path) -> None:
    parts = [LINES[:20_000], LINES[20_000:40_000], LINES[40_000:50_000], LINES[50_000:]]
    (tmp_path / "p0.txt").write_bytes(parts[0])
    (tmp_path / "p1.gz").write_bytes(gzip.compress(parts[1]))
    (tmp_path / "p2.xz").write_bytes(lzma.compress(parts[2][:5_000]) + lzma.compress(parts[2][5_000:]))
    frames = [zstandard.compress(parts[3][:3_000]), zstandard.compress(parts[3][3_000:])]
    (tmp_path / "p3.zst").write_bytes(b"".join(frames))
    assert built(tmp_path, files(tmp_path, "p*"), len(LINES)) == LINES
    assert built(tmp_path, files(tmp_path, "p3.zst", "p[0-2]*"), 10**9, clip=True) == parts[3] + b"".join(
        parts[:3]
    )


def test_a_long_zstd_window_is_read(tmp_path: Path) -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=27, enable_ldm=True)
    compressor = zstandard.ZstdCompressor(compression_params=parameters)
    (tmp_path / "a.zst").write_bytes(compressor.compress(LINES * 200))
    assert built(tmp_path, files(tmp_path, "a.zst"), 10**9, clip=True) == LINES * 200


@pytest.mark.parametrize("ending", ["gz", "xz", "zst"])
def test_damaged_and_cut_files_are_named(tmp_path: Path, ending: str) -> None:
    compress = {"gz": gzip.compress, "xz": lzma.compress, "zst": zstandard.compress}[ending]
    whole = compress(os.urandom(40_000))
    path = tmp_path / f"a.{ending}"
    for content in (whole[:-20_000], whole[:-1], whole[:3], b"plain text, not compressed\n" * 10):
        path.write_bytes(content)
        with pytest.raises(InputError, match=rf"a\.{ending}: byte \d+: ") as caught:
            built(tmp_path, files(tmp_path, path.name), 10**9, clip=True)
        assert "\n" not in str(caught.value)
    assert not [entry for entry in (tmp_path / "cache" / "corpora").iterdir()]


def test_odd_bytes_are_kept_as_they_are(tmp_path: Path) -> None:
    odd = b"caf\xe9\r\nNUL \0 here\r\n\xff\xfe\n\n\nno line end"
    (tmp_path / "a.txt").write_bytes(odd)
    assert (
        built(tmp_path, files(tmp_path, "a.txt"), len(odd), clip=True)
        == b"caf\xe9\r\nNUL \0 here\r\n\xff\xfe\n\n\n"
    )
    assert built(tmp_path, files(tmp_path, "a.txt"), len(odd) + 1, clip=True) == odd
    (tmp_path / "b.txt").write_bytes(bytes(5_000))  # not one line end
    assert built(tmp_path, files(tmp_path, "b.txt"), 3_000) == bytes(3_000)


def test_empty_sources_directories_devices_and_missing_files(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_bytes(b"")
    (tmp_path / "empty.gz").write_bytes(gzip.compress(b""))
    (tmp_path / "folder").mkdir()
    for name in ("empty.txt", "empty.gz"):
        with pytest.raises(InputError, match="holds no text"):
            built(tmp_path, files(tmp_path, name), 1_000, clip=True)
        with pytest.raises(InputError, match="holds no text"):
            replay_text(files(tmp_path, "replay.txt", replay=name), tmp_path / "cache")
    for name, message in [
        ("folder", "is a directory"),
        ("/dev/zero", "is not a regular file"),
        ("missing.txt", "no such file"),
        ("missing*", "matches no file"),
    ]:
        with pytest.raises(InputError, match=message):
            files(tmp_path, name)


def test_a_growing_file_is_read_to_the_size_it_had(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(LINES)
    source = files(tmp_path, "a.txt")
    with path.open("ab") as file:
        file.write(b"later\n")
    assert built(tmp_path, source, 10**9, clip=True) == LINES


def test_a_shrunk_or_changed_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(LINES)
    source = files(tmp_path, "a.txt")
    source.identity("train")
    path.write_bytes(LINES.upper())
    with pytest.raises(InputError, match=r"a\.txt: "):
        built(tmp_path, source, 10**9, clip=True)
    path.write_bytes(LINES[:100])
    with pytest.raises(InputError, match=rf"a\.txt: byte 100: .*{len(LINES)}"):
        built(tmp_path, source, 10**9, clip=True)


def test_replayed_text_is_never_part_of_the_corpus(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(LINES)
    with pytest.raises(InputError, match=r"a\.txt: "):
        files(tmp_path, "*.txt", replay="a.txt")
    os.link(tmp_path / "a.txt", tmp_path / "other-name.txt")
    with pytest.raises(InputError, match=r"a\.txt: "):
        files(tmp_path, "a.txt", replay="other-name.txt")


def test_replayed_text_is_one_plain_file(tmp_path: Path) -> None:
    (tmp_path / "r.gz").write_bytes(gzip.compress(b"one\r\ntwo"))
    (tmp_path / "a.txt").write_bytes(LINES)
    result = replay_text(
        files(tmp_path, "a.txt", replay="r.gz", replay_label="Two lines"), tmp_path / "cache"
    )
    assert result.path.read_bytes() == b"one\r\ntwo"
    assert (result.label, result.bytes) == ("Two lines", 8)
    assert result.sha256 == sha256_file(result.path)


def test_the_corpus_does_not_change_with_the_replayed_text_and_is_made_once(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(LINES)
    (tmp_path / "other.txt").write_bytes(b"another text\n")
    seen: list[Progress] = []
    first = build_corpus(files(tmp_path, "a.txt"), 0.01, tmp_path / "cache", seen.append)
    assert seen[-1].done_bytes == seen[-1].total_bytes == 10_000
    seen.clear()
    again = build_corpus(files(tmp_path, "a.txt", replay="other.txt"), 0.01, tmp_path / "cache", seen.append)
    assert again == first
    assert not seen
    first.path.write_bytes(b"cut")
    assert build_corpus(files(tmp_path, "a.txt"), 0.01, tmp_path / "cache").path.stat().st_size == first.bytes


def test_files_of_one_name_keep_their_digests_apart(tmp_path: Path) -> None:
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_bytes(folder.encode() + b"\n")
    source = files(tmp_path, "x/a.txt", "y/a.txt")
    assert list(source.inputs("train")) == ["a.txt", "a.txt (2)"]


def test_the_standard_library_is_a_source_everywhere(tmp_path: Path) -> None:
    source = stdlib_source()
    assert source.label == f"{platform.python_implementation()} {platform.python_version()} standard library"
    assert source.identity("train") == stdlib_source().identity("train")
    everything = build_corpus(source, 541, tmp_path, clip=True)
    replay = replay_text(source, tmp_path)
    assert everything.clipped
    assert everything.bytes > 2_000_000
    assert min(sources.HELD_OUT_BYTES, everything.bytes // 8) * 0.9 < replay.bytes <= sources.HELD_OUT_BYTES
    assert everything.label in replay.label
    names = {split: {file.name for file in source._splits[split]} for split in ("train", "test")}  # type: ignore[index]
    assert not names["train"] & names["test"]
    assert "pydoc_data/topics.py" in names["train"] | names["test"]
    assert not any("site-packages" in name or "_sysconfigdata" in name for name in names["train"])
    assert load_manifest(everything.path).inputs.keys() == {source.label}
    first = build_corpus(source, 1, tmp_path).path.read_bytes()
    assert everything.path.read_bytes().startswith(first)


def test_a_minimal_standard_library_is_enough_and_none_is_an_error(tmp_path: Path) -> None:
    top = tmp_path / "lib"
    (top / "package").mkdir(parents=True)
    (top / "site-packages").mkdir()
    (top / "site-packages" / "foreign.py").write_text("foreign = 1\n" * 1_000)
    for number in range(40):
        (top / "package" / f"module{number}.py").write_text(f"value = {number}\n" * 50)
    source = stdlib_source(top)
    text = build_corpus(source, 1, tmp_path / "cache", clip=True).path.read_bytes()
    held_out = replay_text(source, tmp_path / "cache").path.read_bytes()
    assert b"foreign" not in text
    assert 0.05 < len(held_out) / (len(text) + len(held_out)) <= 0.125
    with pytest.raises(InputError, match="cache: "):
        stdlib_source(tmp_path / "cache")


def test_rows_are_rejoined_to_the_raw_file() -> None:
    assert rejoin(["", " = Title = \n", "", " words \n", None]) == b" \n = Title = \n \n words \n \n"
    text = shared_text("wiki.test.raw").read_bytes()
    lines = text.decode().split("\n")[:-1]
    assert len(lines) == 4358
    assert rejoin([line + "\n" if line.strip() else "" for line in lines]) == text
    assert rejoin([line if line.strip() else "" for line in lines]) == text


@pytest.mark.parametrize("layout", ["raw", "parquet", "arrow stream", "arrow file"])
def test_a_local_copy_of_wikitext(tmp_path: Path, layout: str) -> None:
    test_text = shared_text("wiki.test.raw").read_bytes()
    train_text = shared_text("wiki.valid.raw").read_bytes()
    if layout == "raw":
        (tmp_path / "wiki.test.raw").write_bytes(test_text)
        (tmp_path / "wiki.train.raw").write_bytes(train_text)
    else:
        _write_rows(tmp_path, layout, "test", test_text)
        _write_rows(tmp_path, layout, "train", train_text)
    source = resolve_source(WikitextConfig(source="wikitext-103", path=str(tmp_path)))
    replay = replay_text(source, tmp_path / "cache")
    assert replay.path.read_bytes() == test_text
    assert replay.label == "WikiText-103 test split"
    whole = build_corpus(source, 1.146846, tmp_path / "cache")
    assert whole.path.read_bytes() == train_text
    assert whole.label == "WikiText-103"


def _write_rows(folder: Path, layout: str, split: str, text: bytes) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow (extra `datasets`) is not installed")
    rows = [line + "\n" if line.strip() else "" for line in text.decode().split("\n")[:-1]]
    halves = [rows[:1000], rows[1000:]]
    for number, half in enumerate(halves):
        table = pyarrow.table({"text": half})
        if layout == "parquet":
            parquet = pytest.importorskip("pyarrow.parquet")
            target = folder / "wikitext-103-raw-v1" / f"{split}-0000{number}-of-00002.parquet"
            target.parent.mkdir(exist_ok=True)
            parquet.write_table(table, target)
            continue
        target = folder / f"wikitext-{split}-0000{number}-of-00002.arrow"
        new = pyarrow.ipc.new_stream if layout == "arrow stream" else pyarrow.ipc.new_file
        with pyarrow.OSFile(str(target), "wb") as sink, new(sink, table.schema) as writer:
            writer.write_table(table)


def test_another_text_is_not_taken_for_wikitext(tmp_path: Path) -> None:
    for split in ("train", "test"):
        (tmp_path / f"wiki.{split}.raw").write_bytes(LINES + split.encode())
    source = resolve_source(WikitextConfig(source="wikitext-103", path=str(tmp_path)))
    with pytest.raises(InputError, match=r"^WikiText-103: .*sha256 "):
        replay_text(source, tmp_path / "cache")
    with pytest.raises(InputError, match="cache: "):
        resolve_source(WikitextConfig(source="wikitext-103", path=str(tmp_path / "cache")))


def test_a_damaged_parquet_file_is_named(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow (extra `datasets`) is not installed")
    for split in ("train", "test"):
        (tmp_path / f"{split}.parquet").write_bytes(b"PAR1 not at all")
    source = resolve_source(WikitextConfig(source="wikitext-103", path=str(tmp_path)))
    with pytest.raises(InputError, match=r"train\.parquet: .*`text`"):
        build_corpus(source, 1, tmp_path / "cache")


@pytest.fixture
def no_hub_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in (*os.environ,):
        if variable.startswith("HF_") or variable.lower().endswith("_proxy"):
            monkeypatch.delenv(variable)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))


@pytest.mark.usefixtures("no_hub_variables")
def test_a_silent_hub_is_noticed_within_five_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A real server that accepts and never answers: the worst case for a time-out on connecting."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.getsockname()[1]}")
        started = time.monotonic()
        problem = hub_problem("main", timeout_s=1.0)
        assert problem is not None
        assert time.monotonic() - started < 2
        port = server.getsockname()[1]
    started = time.monotonic()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{port}")
    assert "cannot be reached" in (hub_problem("main") or "")
    assert time.monotonic() - started < 5


@pytest.mark.usefixtures("no_hub_variables")
def test_without_a_hub_the_default_is_the_standard_library_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    started = time.monotonic()
    source = default_source()
    assert time.monotonic() - started < 5
    assert source.name == "stdlib"
    reason = source.note or ""
    assert "\n" not in reason
    expected = "HF_HUB_OFFLINE is set" if importlib.util.find_spec("datasets") else "is not installed"
    assert expected in reason
    with pytest.raises(InputError, match=r"^wikitext-103: "):
        resolve_source(WikitextConfig(source="wikitext-103"))


@pytest.mark.usefixtures("no_hub_variables")
def test_a_copy_in_the_cache_of_datasets_is_found(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow (extra `datasets`) is not installed")
    folder = (
        tmp_path / "hub/datasets/Salesforce___wikitext/wikitext-103-raw-v1/0.0.0" / sources.WIKITEXT_REVISION
    )
    folder.mkdir(parents=True)
    text = shared_text("wiki.test.raw").read_bytes()
    for split in ("train", "test"):
        _write_rows(folder, "arrow stream", split, text)
    source = default_source()
    assert "copy in the cache" in (source.note or "")
    assert replay_text(source, tmp_path / "cache").path.read_bytes() == text


def test_unknown_keys_and_sources_are_rejected() -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(CorpusSource)
    assert adapter.validate_python({"source": "stdlib"}).source == "stdlib"
    for wrong in (
        {"source": "stdlib", "extra": 1},
        {"source": "unheard-of"},
        {"source": "files", "train": [], "replay": ["x"]},
        {},
    ):
        with pytest.raises(ValidationError):
            adapter.validate_python(wrong)


def test_input_files_keep_their_own_size_and_digest(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    file = input_file(path)
    path.write_bytes(b"abcdef")
    assert file.size == 3
    assert b"".join(file.blocks()) == b"abc"
