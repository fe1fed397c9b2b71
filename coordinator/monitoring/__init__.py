"""What others may know of a running server, over HTTP: its health and its metrics.

    probe, scraper ─▶ listener ─┬─ `/healthz`, `/readyz` ─▶ one word
                                └─ `/metrics` ─▶ observation, on the loop ─▶ text, in a thread

In the order of their imports: `health` (leading, or why not), `observation` (what a scrape reads
on the loop, as one value), `metrics` (each metric's name, type, unit, labels and value),
`http_requests` (who may ask for what), `listener` (connections, their limits and time-outs).

Only the server imports it. `metrics` and `listener` need libraries that a server without the
listener does not import: `prometheus_client` and `aiohttp`.
"""
