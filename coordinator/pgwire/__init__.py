"""The PostgreSQL wire protocol without I/O: messages, values, rows and COPY, from and to bytes.

    bytes ─▶ protocol, codec ─▶ FrontendMessage ─▶ session ─▶ BackendMessage ─▶ codec ─▶ bytes
    RecordBatch ─▶ rows ─▶ column_text, column_binary ─▶ cells ─▶ DataRows
    CopyData ─▶ copy_in, copy_binary ─▶ RecordBatch ─▶ copy_out, copy_binary ─▶ CopyFrames

- Messages: `messages`, `codec`, `protocol`, `startup`; for transcripts and logs `client_codec`,
  `trace`.
- Values: `values`, `arrays`.
- Columns: `rows`, `cells`, `column_text`, `column_binary`, `column_numeric`.
- COPY: `copy_in`, `copy_out`, `copy_binary`; texts as columns are the package `ingest.copy_text`.

It imports only `sql` and `ingest.copy_text`, and nothing that does I/O (a contract).
`transaction`, `execution`, `session` and `server` import it.
"""
