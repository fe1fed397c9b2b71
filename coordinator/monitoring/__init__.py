"""What others may know of a running server, over HTTP: its health, its metrics, its page.

    probe, scraper ─▶ listener ─┬─ `/healthz`, `/readyz` ─▶ one word
    browser                     ├─ `/metrics` ─▶ observation, on the loop ─▶ text, in a thread
                                └─ `/` ─▶ log-in ─▶ a session in this process ─▶ SQL ─▶ JSON

In the order of their imports: `health` (leading, or why not), `observation` (what a scrape reads
on the loop, as one value), `metrics` (each metric's name, type, unit, labels and value),
`http_requests` (who may ask for what), `page_sessions` and `page_queries` (what the page asks the
server), `page_visits` (cookies), `page` (its requests; its files are in `static/`), `listener`
(connections, their limits and time-outs).

Only the server imports it. `metrics`, `page` and `listener` need libraries that a server without
the listener does not import: `prometheus_client` and `aiohttp`.
"""
