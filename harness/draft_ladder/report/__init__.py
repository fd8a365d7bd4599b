"""From run records, and nothing else, to statistics, tables, charts and judgements."""
