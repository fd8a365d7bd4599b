"""A language model through llama.cpp's low-level calls: decode a batch, read logits by index, roll back.

Nothing here keeps logits of the whole context: a verification needs those of its own batch, so memory does
not grow with n_ctx times vocabulary.

Two settings are fixed because without them the text changes or the process dies. Flash attention is on:
without it the logits of a batch and of single tokens differ, and with them the greedy text. Extra buffer
types are off: the repacked layouts use AMX instructions, which gcc 12 compiles wrongly.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from draft_ladder.base.errors import InputError
from draft_ladder.llama.library import FloatArray, Library, TokenArray, encode, load_model, meta_value


class Model:
    """One sequence of a GGUF model on the CPU.

    `n_ctx`: tokens the KV cache holds; `n_batch`: max tokens of one decode; `threads`: of every decode.
    Raises InputError for a file that cannot be loaded or settings it does not allow.
    """

    def __init__(self, path: Path, *, n_ctx: int = 2048, n_batch: int = 512, threads: int = 1) -> None:
        if n_ctx < 2 or n_batch < 1 or threads < 1:
            raise InputError("model", f"n_ctx {n_ctx}, n_batch {n_batch}, threads {threads}", "raise them")
        library = Library.get()
        self.path = path
        self._context: Any = None
        self._batch: Any = None
        self._model: Any = load_model(path, vocab_only=False)
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
                self.path, f"no context of {n_ctx} tokens ({Library.first_error})", "lower n_ctx"
            )
        self._memory = library.llama_get_memory(self._context)
        self._vocabulary = library.llama_model_get_vocab(self._model)
        self.name = meta_value(self._model, "general.name") or self.path.stem
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
        library = Library.get()
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
        return encode(self._vocabulary, text, add_special=special, parse_special=special)

    def detokenize(self, tokens: Sequence[int]) -> str:
        """The text of tokens, special ones written out; cut characters become U+FFFD."""
        library = Library.get()
        raw = b""
        for token in tokens:
            buffer = ctypes.create_string_buffer(256)
            length = library.llama_token_to_piece(self._vocabulary, int(token), buffer, len(buffer), 0, True)
            raw += buffer.raw[:length] if length > 0 else b""
        return raw.decode(errors="replace")

    def is_end(self, token: int) -> bool:
        """Whether the model ends its answer with this token."""
        return bool(Library.get().llama_vocab_is_eog(self._vocabulary, token))

    def chat(self, message: str) -> str:
        """A user's message in the model's own chat template, ready for the answer.

        Raises InputError if the model has no template llama.cpp knows.
        """
        library = Library.get()
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
        Library.get().llama_memory_clear(self._memory, False)
        self.n_past = 0

    def truncate(self, n_past: int) -> None:
        """Keep the first `n_past` tokens of the sequence in the KV cache."""
        if n_past > self.n_past:
            raise ValueError(f"cannot keep {n_past} of {self.n_past} tokens")
        if n_past < self.n_past:
            if not Library.get().llama_memory_seq_rm(self._memory, 0, n_past, -1):
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
        Library.first_error = ""
        code = Library.get().llama_decode(self._context, self._batch)
        if code != 0:
            raise InputError(
                self.path, f"decoding {count} tokens failed ({code}: {Library.first_error})", "lower n_ctx"
            )
        self.n_past += count

    def logits(self, index: int = -1) -> FloatArray:
        """Logits after the batch's token `index` (-1: the last), shape [n_vocab]: a view until the next
        decode.
        """
        pointer = Library.get().llama_get_logits_ith(self._context, index)
        # np.ctypeslib.as_array would take 0.2 ms a call here: it makes a new array type each time.
        row = self._row.from_address(ctypes.addressof(pointer.contents))
        logits: FloatArray = np.frombuffer(memoryview(row), dtype=np.float32)
        return logits
