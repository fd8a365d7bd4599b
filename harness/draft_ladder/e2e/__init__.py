"""End to end: a real model answers with each drafter, and a report in four ledgers says what it was worth."""
