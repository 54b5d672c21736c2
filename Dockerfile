# SPDX-License-Identifier: Apache-2.0
# The two commands of the README on a plain Debian with Python, everything set up in the image (2 GB):
#
#     docker build -t pkm .
#     docker run --rm -it --init --network host pkm    # ./pkm run delta; the page is at http://127.0.0.1:8080
#     docker run --rm pkm ./pkm test                   # installs what tests need first
#
# -it lets the robot go on until Ctrl-C; -v "$PWD/reports:/pkm/reports" keeps its reports. Kernels are compiled for the
# processor that the image is built on: on another kind they are compiled again, which takes two minutes of each start.
FROM python:3.12-slim-bookworm
RUN apt-get update \
    && apt-get install -y --no-install-recommends build-essential cmake git \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /pkm
COPY . .
RUN ./pkm setup
CMD ["./pkm", "run", "delta"]
