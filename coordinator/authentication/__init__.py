"""Who may connect, and how they prove it, without I/O: rules, mechanisms and verifiers.

    pg_hba.conf ──▶ hba_file ─▶ hba ─▶ HbaRules.match(facts) ─▶ HbaRule: the method and its options
    pg_ident.conf ▶ hba_file ─▶ ident_map ─▶ IdentMap.check(map, system user, role)
    SASL payload ─▶ scram ─▶ ScramReply, or a SqlError that ends the connection
    password ─▶ saslprep ─▶ verifier ─▶ `SCRAM-SHA-256$..`, the only form that is stored

INVARIANTS
  D1  the first rule whose type, address, database and role match decides; no rule is a refusal.
  D2  a file with one broken line gives no rules at all: whoever loads it keeps the old ones.
  D3  a role that is unknown, has no password, or an expired one goes through the same exchange as
      a wrong password: the same messages, the same work, the same error.
  D4  what depends on a secret is compared in constant time (`hmac.compare_digest`).
  D5  nothing that a client sends raises anything but SqlError, and its length is bounded first.
  D6  randomness, host names and network interfaces are arguments.

- Mechanisms: `scram`, `verifier`, `saslprep`, `channel_binding`.
- Rules: `hba_file` (lines and their tokens), `hba_tokens` (what a token matches), `hba`,
  `hba_addresses`, `hba_options`, `ident_map`, `file_rules` (rows of the two views).

It imports only `sql`, and reads only the files that it is told to read. PBKDF2 takes milliseconds:
callers run `verifier` in a thread. `execution`, `pgcatalog` and `server` import it.
"""
