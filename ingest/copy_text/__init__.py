"""Texts of COPY as columns: what a client sends by COPY FROM, and what an upstream's COPY TO gives.

    block of lines ─▶ plain_blocks (split as PostgreSQL does) ─▶ columns (casts of Arrow) ─▶ Arrow
                      lines (one by one, where a block is not plain)

`kernels` are calls of Arrow with types; `forms` tells texts that Arrow reads as PostgreSQL does.
`spans` finds quotes in all texts of a column, for `json_documents` and `quoted_arrays`.
The wire protocol stands on it, and the readers of sources.
"""
