"""End to end: a real model answers with each drafter, and four ledgers say what it was worth."""
