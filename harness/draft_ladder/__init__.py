"""Draft Ladder: measures prompt-lookup drafting, one data structure at a time."""
