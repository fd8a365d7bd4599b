"""A language model through llama.cpp's low-level calls: decode a batch, read logits by index, roll back.

Needs the extra `[model]` (llama-cpp-python); everything else works without it. Nothing here keeps logits of
the whole context: a verification needs those of its own batch, so memory does not grow with n_ctx times
vocabulary.

Two settings are fixed because without them the text changes or the process dies. Flash attention is on:
without it the logits of a batch and of single tokens differ, and with them the greedy text. Extra buffer
types are off: the repacked layouts use AMX instructions, which gcc 12 compiles wrongly.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import re
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import canonical_json, open_regular, package_version
from draft_ladder.data.gguf_vocabulary import read_gguf_vocabulary
from draft_ladder.data.tokenizers import Tokenizer, load_tokenizer

TokenArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float32]

INSTALL = "run `make model`, or pip install 'draft-ladder[model]' (it compiles llama.cpp: 7 to 15 minutes)"
GGUF_MAGIC = b"GGUF"
_ERROR_LEVEL = 4  # of llama.cpp's log


class _Library:
    """llama_cpp, imported once, with its log turned into "the first error it reported"."""

    _module: ModuleType | None = None
    _callback: Any = None
    first_error = ""  # since it was last emptied: what follows a first error is mostly its echo

    @classmethod
    def get(cls) -> Any:
        if cls._module is None:
            try:
                llama_cpp: Any = importlib.import_module("llama_cpp")
            except ImportError as error:
                raise InputError(
                    "model", f"llama-cpp-python cannot be imported ({error})", INSTALL
                ) from error

            def keep_errors(level: int, text: bytes, data: Any) -> None:
                if level == _ERROR_LEVEL and text.strip() and not cls.first_error:
                    cls.first_error = " ".join(text.decode(errors="replace").split())

            cls._callback = llama_cpp.llama_log_callback(keep_errors)  # the library keeps only a pointer
            llama_cpp.llama_log_set(cls._callback, ctypes.c_void_p(0))
            llama_cpp.llama_backend_init()
            cls._module = llama_cpp
        return cls._module


def is_available() -> bool:
    """Whether the extra `[model]` is installed."""
    try:
        _Library.get()
    except InputError:
        return False
    return True


def describe_installation() -> tuple[bool, str]:
    """Whether a model can be run here, and one line that says so (for `ladder doctor`).

    A build with AMX is harmless here (extra buffer types are off), but not for other users of llama_cpp.
    """
    try:
        library = _Library.get()
    except InputError as error:
        return False, str(error)
    version = package_version("llama-cpp-python")
    features = (library.llama_print_system_info() or b"").decode(errors="replace")
    if re.search(r"AMX_INT8 = 1", features):
        return True, (
            f"llama-cpp-python {version}, built with AMX, which gcc 12 compiles wrongly: llama_cpp.Llama may "
            "crash at its first decode; build it again with AMX off (`make model` does)"
        )
    return True, f"llama-cpp-python {version}, built without AMX"


def _load(path: Path, *, vocab_only: bool) -> Any:
    """The opened llama_model of a GGUF file. InputError for a missing, cut or foreign file."""
    library = _Library.get()
    with open_regular(path) as file:
        magic = file.read(len(GGUF_MAGIC))
    if magic != GGUF_MAGIC:
        raise InputError(
            path, "is not a GGUF file (it does not begin with GGUF)", "name a model's .gguf file"
        )
    parameters = library.llama_model_default_params()
    parameters.vocab_only = vocab_only
    parameters.n_gpu_layers = 0
    parameters.use_extra_bufts = False
    _Library.first_error = ""
    model = library.llama_model_load_from_file(str(path).encode(), parameters)
    if not model:
        reason = _Library.first_error or "no reason given"
        raise InputError(path, f"cannot be loaded by llama.cpp ({reason})", "fetch the file again")
    return model


def _meta(model: Any, key: str) -> str:
    buffer = ctypes.create_string_buffer(1024)
    length = _Library.get().llama_model_meta_val_str(model, key.encode(), buffer, len(buffer))
    return buffer.value.decode(errors="replace") if length >= 0 else ""


def _encode(vocabulary: Any, text: str, *, add_special: bool, parse_special: bool) -> TokenArray:
    library = _Library.get()
    raw = text.encode(errors="replace")  # half a surrogate pair is in no vocabulary
    room = len(raw) + 16
    while True:
        tokens = np.empty(room, dtype=np.int32)
        pointer = tokens.ctypes.data_as(ctypes.POINTER(ctypes.c_int32))
        count = int(
            library.llama_tokenize(vocabulary, raw, len(raw), pointer, room, add_special, parse_special)
        )
        if count >= 0:
            return tokens[:count].copy()
        room = -count


class Vocabulary(NamedTuple):
    """What is known about a model's tokenizer; None where nothing is."""

    size: int | None = None
    name: str | None = None
    sha256: str | None = None


def read_vocabulary(path: Path) -> Vocabulary:
    """The identity of a GGUF file's tokenizer, as `model_tokenizer` has it. InputError for no GGUF file."""
    try:
        vocabulary = read_gguf_vocabulary(path)
    except InputError:
        if not is_available():
            raise
        tokenizer = VocabularyTokenizer(path)
        tokenizer.close()
        return Vocabulary(tokenizer.vocab_size, tokenizer.name, tokenizer.sha256)
    return Vocabulary(len(vocabulary.tokens), path.stem, vocabulary.sha256)


def model_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer of a GGUF file: our own where we know its rule, else llama.cpp's. Raises InputError."""
    try:
        read_gguf_vocabulary(path)
    except InputError:
        return VocabularyTokenizer(path)
    return load_tokenizer(f"gguf:{path}")


class VocabularyTokenizer:
    """The tokenizer of a GGUF file by llama.cpp itself, without the model's weights: for rules of which we
    have no implementation of our own.

    As with any tokenizer whose pattern is not known here, a token file is defined as the encodings of the
    text's segments one after the other.
    """

    cut_pattern = re.compile(rb"[A-Za-z](?= [A-Za-z])")
    cut_is_proven = False
    prefix: tuple[int, ...] = ()
    suffix: tuple[int, ...] = ()

    def __init__(self, path: Path) -> None:
        library = _Library.get()
        self._model = _load(path, vocab_only=True)
        self._vocabulary = library.llama_model_get_vocab(self._model)
        self.name = path.stem
        self.vocab_size = int(library.llama_vocab_n_tokens(self._vocabulary))
        self.sha256 = _vocabulary_digest(self._model, self._vocabulary, self.vocab_size)
        self.versions = {"llama-cpp-python": package_version("llama-cpp-python")}

    def encode(self, text: str) -> TokenArray:
        """Ids of `text`, nothing added and no special token looked for. Safe in several threads at once."""
        return _encode(self._vocabulary, text, add_special=False, parse_special=False)

    def encode_text(self, text: str) -> TokenArray:
        """Ids of a whole text, with what the model puts around it."""
        return _encode(self._vocabulary, text, add_special=True, parse_special=False)

    def close(self) -> None:
        """Give the vocabulary back."""
        if self._model:
            _Library.get().llama_model_free(self._model)
            self._model = None


def _vocabulary_digest(model: Any, vocabulary: Any, size: int) -> str:
    """SHA-256 over everything that decides about tokens: kind, pre-tokenizer and every token's text."""
    library = _Library.get()
    digest = hashlib.sha256()
    for token in range(size):
        text = library.llama_vocab_get_text(vocabulary, token) or b""
        digest.update(len(text).to_bytes(4, "little") + text)
    identity = {
        "kind": _meta(model, "tokenizer.ggml.model"),
        "pre": _meta(model, "tokenizer.ggml.pre"),
        "tokens": digest.hexdigest(),
    }
    return hashlib.sha256(canonical_json(identity).encode()).hexdigest()


class Model:
    """One sequence of a GGUF model on the CPU.

    `n_ctx`: tokens the KV cache holds; `n_batch`: max tokens of one decode; `threads`: of every decode.
    Raises InputError for a file that cannot be loaded or settings it does not allow.
    """

    def __init__(self, path: Path, *, n_ctx: int = 2048, n_batch: int = 512, threads: int = 1) -> None:
        if n_ctx < 2 or n_batch < 1 or threads < 1:
            raise InputError("model", f"n_ctx {n_ctx}, n_batch {n_batch}, threads {threads}", "raise them")
        library = _Library.get()
        self.path = path
        self._context: Any = None
        self._batch: Any = None
        self._model: Any = _load(path, vocab_only=False)
        try:
            self._open(library, n_ctx, min(n_batch, n_ctx), threads)
        except BaseException:
            self.close()
            raise

    def _open(self, library: Any, n_ctx: int, n_batch: int, threads: int) -> None:
        trained = int(library.llama_model_n_ctx_train(self._model))
        if n_ctx > trained:
            raise InputError(
                self.path, f"n_ctx {n_ctx} is more than the {trained} it was trained for", "lower n_ctx"
            )
        parameters = library.llama_context_default_params()
        parameters.n_ctx = n_ctx
        parameters.n_batch = parameters.n_ubatch = n_batch
        parameters.n_threads = parameters.n_threads_batch = threads
        parameters.flash_attn_type = library.LLAMA_FLASH_ATTN_TYPE_ENABLED
        parameters.no_perf = True
        self._context = library.llama_init_from_model(self._model, parameters)
        if not self._context:
            raise InputError(
                self.path, f"no context of {n_ctx} tokens ({_Library.first_error})", "lower n_ctx"
            )
        self._memory = library.llama_get_memory(self._context)
        self._vocabulary = library.llama_model_get_vocab(self._model)
        self.name = _meta(self._model, "general.name") or self.path.stem
        self.n_vocab = int(library.llama_vocab_n_tokens(self._vocabulary))
        self._row = ctypes.c_float * self.n_vocab
        # llama.cpp rounds the context up to a multiple of 256: what was asked for is the limit here.
        self.n_ctx, self.n_batch, self.threads = n_ctx, n_batch, threads
        self.n_past = 0
        self._make_batch(library, n_batch)

    def _make_batch(self, library: Any, n_batch: int) -> None:
        self._batch = library.llama_batch_init(n_batch, 0, 1)
        shape = (n_batch,)
        self._tokens = np.ctypeslib.as_array(self._batch.token, shape)
        self._positions = np.ctypeslib.as_array(self._batch.pos, shape)
        self._wanted = np.ctypeslib.as_array(self._batch.logits, shape)
        for i in range(n_batch):
            self._batch.n_seq_id[i] = 1
            self._batch.seq_id[i][0] = 0

    def __enter__(self) -> Model:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give everything back; the model cannot be used afterwards."""
        library = _Library.get()
        if self._batch is not None:
            library.llama_batch_free(self._batch)
            self._batch = None
        if self._context:
            library.llama_free(self._context)
            self._context = None
        if self._model:
            library.llama_model_free(self._model)
            self._model = None

    def tokenize(self, text: str, *, special: bool = True) -> TokenArray:
        """Ids of a prompt; `special`: with the model's own BOS and with special tokens read as such."""
        return _encode(self._vocabulary, text, add_special=special, parse_special=special)

    def detokenize(self, tokens: Sequence[int]) -> str:
        """The text of tokens, special ones written out; cut characters become U+FFFD."""
        library = _Library.get()
        raw = b""
        for token in tokens:
            buffer = ctypes.create_string_buffer(256)
            length = library.llama_token_to_piece(self._vocabulary, int(token), buffer, len(buffer), 0, True)
            raw += buffer.raw[:length] if length > 0 else b""
        return raw.decode(errors="replace")

    def is_end(self, token: int) -> bool:
        """Whether the model ends its answer with this token."""
        return bool(_Library.get().llama_vocab_is_eog(self._vocabulary, token))

    def chat(self, message: str) -> str:
        """A user's message in the model's own chat template, ready for the answer.

        Raises InputError if the model has no template llama.cpp knows.
        """
        library = _Library.get()
        template = library.llama_model_chat_template(self._model, None)
        remedy = "leave `chat` out of this workload"
        if template is None:
            raise InputError(self.path, "has no chat template", remedy)
        messages = (library.llama_chat_message * 1)(
            library.llama_chat_message(role=b"user", content=message.encode())
        )
        room = 2 * len(message.encode()) + 1024
        buffer = ctypes.create_string_buffer(room)
        length = library.llama_chat_apply_template(template, messages, 1, True, buffer, room)
        if length < 0 or length > room:
            raise InputError(self.path, "has a chat template that llama.cpp does not know", remedy)
        return buffer.raw[:length].decode()

    def clear(self) -> None:
        """Forget the sequence."""
        _Library.get().llama_memory_clear(self._memory, False)
        self.n_past = 0

    def truncate(self, n_past: int) -> None:
        """Keep the first `n_past` tokens of the sequence in the KV cache."""
        if n_past > self.n_past:
            raise ValueError(f"cannot keep {n_past} of {self.n_past} tokens")
        if n_past < self.n_past:
            if not _Library.get().llama_memory_seq_rm(self._memory, 0, n_past, -1):
                raise InputError(
                    self.path, "cannot roll its cache back (recurrent models cannot)", "use another model"
                )
            self.n_past = n_past

    def decode(self, tokens: Sequence[int] | TokenArray, *, logits_of: str = "all") -> None:
        """Append tokens to the sequence and compute; `logits_of`: "all" of them, or the "last".

        At most n_batch tokens, or any number with "last". InputError when n_ctx is exceeded.
        """
        count = len(tokens)
        if self.n_past + count > self.n_ctx:
            raise InputError(
                "prompt",
                f"{self.n_past + count} tokens do not fit the context of {self.n_ctx}",
                "shorten the prompt or raise n_ctx",
            )
        if logits_of == "last":
            for start in range(0, count, self.n_batch):
                part = tokens[start : start + self.n_batch]
                self._decode(part, every=False)
            return
        if count > self.n_batch:
            raise ValueError(f"{count} tokens in a batch of {self.n_batch}")
        self._decode(tokens, every=True)

    def _decode(self, tokens: Sequence[int] | TokenArray, *, every: bool) -> None:
        count = len(tokens)
        self._tokens[:count] = tokens
        self._positions[:count] = np.arange(self.n_past, self.n_past + count)
        self._wanted[:count] = every
        self._wanted[count - 1] = 1
        self._batch.n_tokens = count
        _Library.first_error = ""
        code = _Library.get().llama_decode(self._context, self._batch)
        if code != 0:
            raise InputError(
                self.path, f"decoding {count} tokens failed ({code}: {_Library.first_error})", "lower n_ctx"
            )
        self.n_past += count

    def logits(self, index: int = -1) -> FloatArray:
        """Logits after the batch's token `index` (-1: the last), shape [n_vocab]: a view until the next
        decode.
        """
        pointer = _Library.get().llama_get_logits_ith(self._context, index)
        # np.ctypeslib.as_array would take 0.2 ms a call here: it makes a new array type each time.
        row = self._row.from_address(ctypes.addressof(pointer.contents))
        logits: FloatArray = np.frombuffer(memoryview(row), dtype=np.float32)
        return logits
