"""The pure core of a timeline: messages and time in, effects out; all shared state in one place.

    session ─▶ message ─▶ core.step(message, now) ─▶ effects ─▶ driver ─▶ completion ─▶ core.step

- The protocol: the package `messages` (requests, replies), `completions`, `effects`; `core`
  dispatches, `state` holds the parts, `settings` their limits.
- Time: `oracle`, `timestamps`, `snapshots`, `read_holds`.
- Transactions: `transactions`, `transaction_buffers`, `own_writes`, `scans`, `predicates`.
- Commits: `commits`, `group_commit`, `commit_delay`, `group_members`, `validation`, `fences`,
  `recent_writes`, `not_null_check`, `leases`. Waiting: the package `locking`; `refresh` moves who
  has waited to a newer timestamp.
- LISTEN and NOTIFY: the package `notifications`.
- Catalog: `catalog`, `catalog_references`, `definition_conflicts`, `stale_definitions`,
  `relation_names`, `catalog_annotations`, `privilege_changes`; as JSON `catalog_records`,
  `object_records`.
- Tables on disk: `cut_schedule`, `cuts`, `maintenance`. For people: `observation`.

No module waits, reads a clock or does I/O (a contract). The package imports `sql` and `storage`
only; all layers from `driver` up import it.
"""
