"""A variant's own static format, made from llama.cpp's: once for each cache, by whatever variant reads it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from draft_ladder.base import native
from draft_ladder.base.artifacts import Artifact, Made, Store
from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import load_manifest, manifest_path
from draft_ladder.base.variants import Variant, discover
from draft_ladder.data.cache import KIND

# Makes the second file from the first; the nanoseconds it took. (Measured runs do it in a process apart.)
Convert = Callable[[Variant, Path, Path], int]


class OwnFile(NamedTuple):
    """A static cache in a variant's own format, and the time it took to make."""

    path: Path
    sha256: str
    format: str
    convert_ns: int


def reader_of(static_format: str) -> Variant:
    """The variant that makes and reads files of this format: no ablation where there is another."""
    readers = [variant for variant in discover() if variant.static_format == static_format]
    if not readers:
        raise InputError(f"format {static_format}", "no built variant reads it", "build the variants again")
    return min(readers, key=lambda variant: variant.group in ("ablations", "peers"))


def convert_here(variant: Variant, source: Path, target: Path) -> int:
    """Convert in this process. InputError names file and byte offset of what is wrong with the source."""
    module = variant.load()
    begin = time.perf_counter_ns()
    with native.errors():
        module.convert_static(str(source), str(target))
    return time.perf_counter_ns() - begin


def own_format(
    llama: Path,
    llama_sha256: str,
    variant: Variant,
    cache: Path,
    *,
    convert: Convert = convert_here,
    note: Callable[[str], None] = lambda line: None,
) -> OwnFile:
    """The variant's own format of a static file in llama.cpp's, made now or found in `cache`/static."""
    identity = {
        "static": llama_sha256,
        "format": variant.static_format,
        "module": variant.module_sha256,  # another build may lay the same content out otherwise
    }
    # The tokenizer, above all.
    made_from = load_manifest(llama, KIND) if manifest_path(llama).is_file() else None

    def make(target: Path) -> Made:
        note(f"static cache: llama.cpp's format -> {variant.static_format}")
        return Made({"convert_ns": convert(variant, llama, target), "converted_by": variant.name})

    artifact = Artifact(
        kind=KIND,
        folder=KIND,
        suffix=f".{variant.static_format}",
        identity=identity,
        make=make,
        inputs={
            **(made_from.inputs if made_from else {}),
            "llama": llama_sha256,
            "module": variant.module_sha256,
        },
        parameters={**(made_from.parameters if made_from else {}), **identity},
    )
    made = Store(cache).get(artifact)
    return OwnFile(made.path, made.sha256, variant.static_format, int(made.manifest.facts["convert_ns"]))


def is_of_another_build(path: Path, variant: Variant) -> bool:
    """Whether the manifest says that another build of the converter made this file."""
    if not manifest_path(path).is_file():
        return False
    return load_manifest(path, KIND).inputs.get("module") not in (None, variant.module_sha256)
