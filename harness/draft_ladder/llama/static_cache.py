"""Static caches for a model: loaded only if they were built with its tokenizer."""

from __future__ import annotations

from pathlib import Path

from draft_ladder.base import native
from draft_ladder.base.errors import InputError
from draft_ladder.base.interfaces import Drafter
from draft_ladder.base.manifests import Manifest, load_manifest, manifest_path
from draft_ladder.data.cache import static_statistics
from draft_ladder.llama.vocabulary import Vocabulary


def load_static(drafter: Drafter, static: Path, vocabulary: Vocabulary) -> None:
    """Load a static cache that belongs to this vocabulary; InputError otherwise, naming both.

    A mapped file's pages are brought in here, some milliseconds for each 100 MB, not by the first drafts.
    """
    check_tokenizer(static, vocabulary)
    try:
        drafter.load(str(static))
        drafter.prefault_static()
    except ValueError as error:
        raise native.input_error(error) from error
    limit = drafter.token_limit()
    if limit is None:
        check_largest_token(static, vocabulary)
    else:
        _check_limit(static, limit, vocabulary)


def check_largest_token(static: Path, vocabulary: Vocabulary) -> None:
    """Read a static file whole and refuse tokens that the vocabulary does not have (InputError)."""
    if vocabulary.size is not None:
        _check_limit(static, static_statistics(static)["token_limit"], vocabulary)


def _check_limit(static: Path, limit: int, vocabulary: Vocabulary) -> None:
    if vocabulary.size is not None and limit > vocabulary.size:
        raise InputError(
            static,
            f"holds tokens up to {limit - 1}, the model's vocabulary has {vocabulary.size}",
            "build the cache with the model's own tokenizer",
        )


def check_tokenizer(static: Path, vocabulary: Vocabulary) -> None:
    """Refuse a static cache of another tokenizer or of a larger vocabulary, as far as its manifest tells.

    Raises InputError naming both.
    """
    if vocabulary.size is None or not manifest_path(static).is_file():
        return
    manifest = _counting_manifest(static)
    name, size = manifest.parameters.get("tokenizer"), manifest.parameters.get("vocab_size")
    theirs = manifest.inputs.get("tokenizer")
    if theirs is not None and vocabulary.sha256 is not None and theirs != vocabulary.sha256:
        raise InputError(
            static,
            f"was built with tokenizer {name!r} ({size} tokens), the model's is "
            f"{vocabulary.name!r} ({vocabulary.size} tokens)",
            "build the cache with the model's own tokenizer",
        )
    if isinstance(size, int) and size > vocabulary.size:
        raise InputError(
            static,
            f"was built for a vocabulary of {size} tokens, the model has {vocabulary.size}",
            "build the cache with the model's own tokenizer",
        )


def _counting_manifest(static: Path) -> Manifest:
    """The manifest that names the tokenizer: the file's own, or that of the file it was made from."""
    manifest = load_manifest(static)
    source = manifest.inputs.get("llama")
    if source is None or "tokenizer" in manifest.inputs:
        return manifest
    for candidate in sorted(static.parent.glob("*.bin.json")):
        other = load_manifest(candidate.with_suffix(""))
        if other.sha256 == source:
            return other
    return manifest
