"""The limits of the figures, by backend. A figure without a limit on a backend is only reported there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from loadtests.measuring.figure import Figure, Limit, Subject, at_least, at_most

# These figures count bytes and rows, or are shares, whose limits are the same on every backend.
_ON_EVERY_BACKEND = {
    "loop_programs": at_most(1),
    "loop_fragments": at_most(3),
    "wire_op": at_most(0.25),
    "wire_segment": at_most(100),
    "clients_rows": at_least(8),
    "far_ahead": at_most(64),
    # The driver takes memory in blocks of 2 MiB. If graphs were never dropped, they would take hundreds.
    "programs_memory": at_most(16),
    "programs_graphs": at_most(64),
}

LIMITS: Mapping[str, Mapping[str, Limit]] = {
    "cpu": {
        **_ON_EVERY_BACKEND,
        # This is the mean over all ops, including those that cut and seal a segment.
        "record_op": at_most(0.4),
        "record_op_stencil": at_most(1.0),
        "record_call": at_most(0.3),
        # The bare stream copies nothing. Fusewire copies an array into messages and out of them, on the same two cores.
        "upload": at_least(0.6, Subject.RATIO),
        "download": at_least(0.35, Subject.RATIO),
        # NumPy runs in a process of its own: in the client's process, beside the I/O thread, it would take 1.5 times as
        # long.
        # Here a loop writes out the result of each step, as it does where all are kept: its time is that of the memory.
        "pointwise": at_least(2.5, Subject.RATIO),
        "pointwise_kept": at_least(2.5, Subject.RATIO),
        "rnn_b1_h256": at_most(0.6, Subject.RATIO),
        "plan_in_use": at_most(0.3),
        "clients_device": at_most(0.4),
        "planning": at_most(30),
        "solve_1000x16": at_most(1, Subject.RATIO),
        # The neighbour is another session, which works while programs are planned. On two cores the C compiler takes
        # one of them now and then, whatever the compiler's priority. If the compiler could use only one core, the
        # neighbour's p99 was half as high, but a new program waited up to twice as long for its plan.
        "planning_neighbour": at_most(3.0, Subject.RATIO),
        "planning_neighbour_waits": at_most(4.5, Subject.RATIO),
        "scraping": at_most(5),
        "engine_frames": at_least(6000),
        "engine_frames_many": at_least(0.7),
        "engine_frames_distinct": at_least(0.7),
        "load_rl": at_most(4),
        "load_mixed": at_least(0.9),
        "load_unequal": at_least(0.97),
        "load_aggressor": at_most(2.5),
        "load_bulk": at_most(5),
        "load_harness": at_most(0.05),
    },
    "cuda": {
        **_ON_EVERY_BACKEND,
        # A host of GPUs may have slower cores than others, but many of them.
        "record_op": at_most(0.12),
        "record_op_stencil": at_most(1.5),
        "record_call": at_most(0.15),
        "fetch_stored": at_most(2.5, Subject.RATIO),
        "fetch_stored_local": at_most(150),
        "fetch_computed": at_most(4.0, Subject.RATIO),
        "upload": at_least(0.8, Subject.RATIO),
        "download": at_least(0.8, Subject.RATIO),
        "rnn_b1_h256": at_most(0.35),
        "rnn_b64_h256": at_most(0.45),
        "rnn_b64_h1024": at_most(1.9),
        "rnn_fori_b1_h256": at_most(0.17),
        "rnn_fori_b64_h256": at_most(0.3),
        "rnn_fori_b64_h1024": at_most(1.6),
        "throughput": at_least(25),
        "throughput_fori": at_least(150),
        "pointwise_fori": at_most(2),
        "gated_fori": at_most(3),
        "normed_fori": at_most(1.6),
        "never_seen_5": at_most(4),
        "never_seen_later": at_most(1),
        "never_seen_10000": at_most(0.4),
        "settling": at_most(3),
        "settling_s": at_most(1.5),
        "device_product": at_most(1.11),
        "device_product_other": at_most(1.33),
        "device_mlp": at_most(1.1),
        "device_mlp_h4096": at_most(1.3),
        "device_split": at_most(1.1),
        "device_blocks": at_most(60),
        "device_conv2d": at_most(1.3),
        "device_norm": at_least(0.85),
        "device_cumsum": at_most(1, Subject.RATIO),
        "device_sort": at_most(1, Subject.RATIO),
        "device_add_at": at_most(1, Subject.RATIO),
        "device_normal": at_most(1.2, Subject.RATIO),
        "solve_1000x16": at_most(1, Subject.RATIO),
        "rl_step": at_most(5, Subject.RATIO),
        "rl_step_local": at_most(350),
        "watched_rnn": at_most(2),
        "watched_fori": at_most(2),
        "watched_rl": at_most(2),
        "load_rl_15": at_least(8000),
        "train_mlp": at_most(0.9, Subject.RATIO),
        "train_mlp_step": at_most(0.25, Subject.RATIO),
        "train_gpt": at_most(0.9, Subject.RATIO),
        "train_gpt_step": at_most(0.25, Subject.RATIO),
        "train_cnn": at_most(0.9, Subject.RATIO),
        "train_cnn_step": at_most(0.3, Subject.RATIO),
        "train_lstm": at_most(1, Subject.RATIO),
        "train_lstm_step": at_most(0.3, Subject.RATIO),
        "train_clients": at_least(2, Subject.RATIO),
        "train_clients_step": at_least(8, Subject.RATIO),
    },
}


def held_to_limit(figure: Figure, backend: str) -> Figure:
    """Returns the figure with its limit on this backend.

    Raises ValueError if the limit is a ratio and the figure has no peer.
    """
    return replace(figure, limit=LIMITS[backend].get(figure.name))
