"""Load tests and benchmarks.

`python -m loadtests bench [--backend cpu|cuda] [--only NAME …] [--json PATH] [--strict]` measures every figure that
Fusewire is held to, prints one table and writes the raw numbers to `loadtests/results/bench-<backend>.json`. A missed
figure is reported and changes the exit status only with `--strict`. A wrong result, or a figure that cannot be
measured, always changes it.

How it is measured:

- Fusewire is used as a user would: its own client, a server in another process, over gRPC on the loopback.
- A peer is measured in the same run, alternating with Fusewire, so that noise hits both alike. The peer runs in a
  process of its own and is alone while it is timed: Fusewire's client and server are idle then, and the peer is idle
  while they are timed.
- On the GPU Fusewire is compared to torch on the same GPU, never to NumPy.
- Results are checked against NumPy before anything is timed. Data are random, never zeros.
- A loop is timed once the server runs nearly all of its ops in fused plans; without such plans there is no figure.
  `cold_start` alone times loops that have no plans yet.
- A number is the median of several turns. The spread beside it is from the 10th to the 90th percentile.
"""
