"""Load generator, scenarios and the peers they are measured against.

`python -m loadtests.bench [--backend cpu|cuda] [--only NAME …] [--json PATH] [--strict]` measures every figure that
Fusewire is held to, prints one table and writes the raw numbers to `loadtests/results/bench-<backend>.json`. A missed
figure is reported and changes the exit status only with `--strict`; a wrong result, or a figure that cannot be
measured, always does.

How it is measured:

- Fusewire is used as a user would: its own client, a server in another process, over gRPC on the loopback.
- A peer is measured in the same run, in turns with Fusewire, so that noise hits both alike. It runs in a process of its
  own, and is alone while it is timed: Fusewire's client and server rest then, as the peer does while they are timed.
- On the GPU Fusewire is compared to torch on the same GPU, never to NumPy.
- Results are checked against NumPy before anything is timed; data are random, never zeros.
- No loop is timed before the server runs nearly all of its ops in fused plans, but in `cold_start`; where that does not
  come in time, there is no figure.
- A number is the median of several turns; the spread beside it is from the 10th to the 90th percentile.

Where things are: `bench` the command · `report` the table and the file · `figure` what a figure is · `limits` what it
must be on each backend · `context` what a figure is measured with · `catalogue` which scenarios there are · `apart`
each in a process of its own · `figures/` one file a scenario · `peers/` what Fusewire is compared to · `programs` the
array code, written once for every library · `new_loops` loops drawn anew · `remote_loop` a loop on Fusewire · `turns`
taking turns and summing up · `steady` when a speed is steady · `waits` percentiles of time · `workers` client
processes · `service` servers and their inspection · `machine` what it all ran on.
"""
