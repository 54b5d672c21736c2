# SPDX-License-Identifier: Apache-2.0
# The two commands of the README on a plain Debian with Python, everything set up in the image:
#
#     docker build -t pkm .
#     docker run --rm --network host pkm                     # ./pkm run delta; the page is at http://127.0.0.1:8080
#     docker run --rm pkm ./pkm test
FROM python:3.12-slim-bookworm
RUN apt-get update \
    && apt-get install -y --no-install-recommends build-essential cmake git \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /pkm
COPY . .
RUN ./pkm setup
CMD ["./pkm", "run", "delta"]
