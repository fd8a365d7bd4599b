"""llama_cpp, the low-level Python binding of llama.cpp: imported once, its errors turned into ours.

Needs the extra `[model]` (llama-cpp-python); everything else works without it. Its functions take and give
ctypes pointers, so that its objects have no better type here than Any.
"""

from __future__ import annotations

import ctypes
import importlib
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import open_regular, package_version

TokenArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float32]

INSTALL = "run `make model`, or pip install 'draft-ladder[model]' (it compiles llama.cpp: 7 to 15 minutes)"
GGUF_MAGIC = b"GGUF"
_ERROR_LEVEL = 4  # of llama.cpp's log


class Library:
    """llama_cpp, imported once, with its log turned into "the first error it reported"."""

    _module: ModuleType | None = None
    _callback: Any = None
    first_error = ""  # since it was last emptied: what follows a first error is mostly its echo

    @classmethod
    def get(cls) -> Any:
        """The module; InputError says how to install it."""
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
        Library.get()
    except InputError:
        return False
    return True


def describe_installation() -> tuple[bool, str]:
    """Whether a model can be run here, and one line that says so (for `ladder doctor`).

    A build with AMX is harmless here (extra buffer types are off), but not for other users of llama_cpp.
    """
    try:
        library = Library.get()
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


def load_model(path: Path, *, vocab_only: bool) -> Any:
    """The opened llama_model of a GGUF file. InputError for a missing, cut or foreign file."""
    library = Library.get()
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
    Library.first_error = ""
    model = library.llama_model_load_from_file(str(path).encode(), parameters)
    if not model:
        reason = Library.first_error or "no reason given"
        raise InputError(path, f"cannot be loaded by llama.cpp ({reason})", "fetch the file again")
    return model


def meta_value(model: Any, key: str) -> str:
    """A text in the model file's metadata; empty where there is none."""
    buffer = ctypes.create_string_buffer(1024)
    length = Library.get().llama_model_meta_val_str(model, key.encode(), buffer, len(buffer))
    return buffer.value.decode(errors="replace") if length >= 0 else ""


def encode(vocabulary: Any, text: str, *, add_special: bool, parse_special: bool) -> TokenArray:
    """Ids of `text`, with the model's BOS (`add_special`), special tokens read as such (`parse_special`)."""
    library = Library.get()
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
