"""From a source to text to a token file: corpora, the synthetic language, tokenizers."""
