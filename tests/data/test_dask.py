"""The Dask builder on a real local cluster of two processes, one of which is killed."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

distributed = pytest.importorskip("distributed", reason="dask (extra `dask`) is not installed")
fsspec = pytest.importorskip("fsspec")

from draft_ladder.base.errors import InputError  # noqa: E402
from draft_ladder.base.manifests import Progress, load_manifest  # noqa: E402
from draft_ladder.cli.cache_verbs import app  # noqa: E402
from draft_ladder.data import spill  # noqa: E402
from draft_ladder.data.cache import build_static_cache  # noqa: E402
from draft_ladder.data.dask_builder import count_with_dask, range_bounds  # noqa: E402
from draft_ladder.data.tokens import write_tokens  # noqa: E402

try:
    spill.caches_module()
except InputError as error:
    pytest.skip(f"native modules are not built: {error}", allow_module_level=True)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as result,
    ):
        yield result


def tokens_file(tmp_path: Path, n: int) -> Path:
    ranks = np.random.default_rng(n).zipf(1.3, n)
    path = tmp_path / "t.tok"
    path.write_bytes(np.minimum(ranks - 1, 4_999).astype("<i4").tobytes())
    return path


def local(tokens: Path, folder: Path) -> bytes:
    return build_static_cache(tokens, folder, formats=["llama"]).paths["llama"].read_bytes()


@pytest.mark.parametrize(
    ("n", "part", "range_bytes"), [(200_000, 30_000, 200_000), (5_000, 700, 1_000), (100_000, 10**6, 10**9)]
)
def test_the_bytes_of_the_local_builder(
    client: Any, tmp_path: Path, n: int, part: int, range_bytes: int
) -> None:
    tokens, target = tokens_file(tmp_path, n), tmp_path / "out.bin"
    seen: list[Progress] = []
    facts = count_with_dask(
        f"file://{tokens}",
        target,
        client=client,
        part_tokens=part,
        range_bytes=range_bytes,
        progress=seen.append,
    )
    assert target.read_bytes() == local(tokens, tmp_path)
    assert facts["n_parts"] == -(-(n - 2) // part)
    if facts["n_ranges"] > 1:
        assert facts["largest_range_bytes"] < target.stat().st_size
    assert seen[-1].done_bytes == seen[-1].total_bytes == 4 * n
    assert seen[-1].tokens_per_s


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_short_files(client: Any, tmp_path: Path, n: int) -> None:
    write_tokens(tmp_path / "t.tok", range(n))
    count_with_dask(str(tmp_path / "t.tok"), tmp_path / "out.bin", client=client)
    assert (tmp_path / "out.bin").read_bytes() == local(tmp_path / "t.tok", tmp_path)


def test_any_address_of_fsspec(client: Any, tmp_path: Path) -> None:
    """Inside a zip archive: no path of the operating system leads there."""
    import zipfile

    tokens = tokens_file(tmp_path, 50_000)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.write(tokens, "inside/t.tok")
    address = f"zip://inside/t.tok::file://{tmp_path}/a.zip"
    count_with_dask(address, tmp_path / "out.bin", client=client, part_tokens=20_000)
    assert (tmp_path / "out.bin").read_bytes() == local(tokens, tmp_path)


def test_a_killed_worker_costs_time_only(tmp_path: Path) -> None:
    tokens, target = tokens_file(tmp_path, 400_000), tmp_path / "out.bin"
    killed: list[int] = []
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as own,
    ):
        victim = next(iter(own.run(os.getpid).values()))

        def kill_once(state: Progress) -> None:
            if not killed and 0 < state.done_bytes < (state.total_bytes or 0) // 2:
                os.kill(victim, signal.SIGKILL)
                killed.append(victim)

        count_with_dask(
            str(tokens), target, client=own, part_tokens=20_000, range_bytes=500_000, progress=kill_once
        )
    assert killed
    assert target.read_bytes() == local(tokens, tmp_path)


def test_the_verb_gives_the_local_builders_file(tmp_path: Path) -> None:
    tokens = tokens_file(tmp_path, 20_000)
    arguments = ["build", f"file://{tokens}", "--engine", "dask", "--jobs", "1", "--json"]
    arguments += ["--part-tokens", "8000", "--range", "40kB"]
    arguments += ["--cache-dir", str(tmp_path / "dask")]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    path = Path(json.loads(result.stdout)["path"])
    assert path.read_bytes() == local(tokens, tmp_path)
    assert (tmp_path / "static" / path.name).is_file()
    assert load_manifest(path, "static").facts["n_tokens"] == 20_000
    assert load_manifest(path, "static").facts["n_parts"] == 3
    assert load_manifest(path, "static").facts["n_ranges"] > 3
    for wrong in (["--memory", "2GB"], ["--format", "nonsense"], ["--range", "wide"]):
        assert isinstance(CliRunner().invoke(app, [*arguments, *wrong]).exception, InputError)
    with pytest.raises(InputError, match=r"^--part-tokens, --range: 20000 .*180000 .*1000000"):
        count_with_dask(str(tokens), tmp_path / "x.bin", part_tokens=1, range_bytes=1)
    local_one = ["build", str(tokens), "--part-tokens", "8000"]
    with pytest.raises(InputError, match=r"^--part-tokens, --range: "):
        CliRunner().invoke(app, local_one, catch_exceptions=False)


def test_what_is_wrong_is_named(client: Any, tmp_path: Path) -> None:
    tokens, out = tokens_file(tmp_path, 10_000), tmp_path / "out.bin"
    raw = bytearray(tokens.read_bytes())
    raw[4 * 7_000 : 4 * 7_001] = b"\xff\xff\xff\xff"
    tokens.write_bytes(raw)
    with pytest.raises(InputError, match=r"t\.tok: byte 28000: .*-1"):
        count_with_dask(str(tokens), out, client=client, part_tokens=1_000)
    with pytest.raises(InputError, match=r"t\.tok: byte \d+: .*100"):
        count_with_dask(str(tokens), out, client=client, vocab_size=100)
    tokens.write_bytes(raw[:-1])
    with pytest.raises(InputError, match="byte 39996: "):
        count_with_dask(str(tokens), out, client=client)
    for address, message in [
        (str(tmp_path / "missing.tok"), "no such file"),
        (str(tmp_path), "is a directory"),
        ("nosuchprotocol://x/y", "cannot be read"),
    ]:
        with pytest.raises(InputError, match=message):
            count_with_dask(address, out, client=client)
    write_tokens(tokens, range(9))
    with pytest.raises(InputError, match="--scheduler: "):
        count_with_dask(str(tokens), out, scheduler="nonsense")
    assert not out.exists()


def test_ranges_are_about_equal(tmp_path: Path) -> None:
    tokens = tokens_file(tmp_path, 300_000)
    bounds = range_bounds(str(tokens), 300_000, 8)
    ids = np.fromfile(tokens, dtype="<i4").astype(np.uint64)
    keys = (ids[:-1] << np.uint64(32)) | ids[1:]
    sizes = np.diff(np.searchsorted(np.sort(keys), [0, *bounds, 2**63]))
    assert len(bounds) >= 5
    assert sizes.max() < len(keys) / 3  # one bigram alone is a tenth of this text
