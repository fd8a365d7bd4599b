"""llama.cpp by its low-level calls, as far as drafting and verifying need it."""
