"""A wall clock that jumps by a day, there and back, for a process and all that it starts; the monotonic clock goes on.

A small library takes the place of the C library's functions that tell the time of day. So Python, gRPC and compilers
see the jumps. The time stamps of files are those of the system's clock.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.patience import HANGS_S

JUMP_S = 86_400
EVERY_MS = 250  # between two jumps

_SOURCE = f"""\
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long jump(void) {{
    static const long jumps[] = {{0, {JUMP_S}, -{JUMP_S}, {JUMP_S}, 0, -{JUMP_S}}};
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return jumps[(now.tv_sec * 1000 + now.tv_nsec / 1000000) / {EVERY_MS} % 6];
}}

int clock_gettime(clockid_t clock, struct timespec *told) {{
    long status = syscall(SYS_clock_gettime, clock, told);
    if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) told->tv_sec += jump();
    return (int)status;
}}

int gettimeofday(struct timeval *restrict told, void *restrict zone) {{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    told->tv_sec = now.tv_sec;
    told->tv_usec = now.tv_nsec / 1000;
    return 0;
}}

time_t time(time_t *told) {{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (told) *told = now.tv_sec;
    return now.tv_sec;
}}
"""


def jumping_clock(folder: Path, compiler: str) -> dict[str, str]:
    """Returns the environment of a process whose wall clock jumps."""
    source, library = folder / "jumping_clock.c", folder / "jumping_clock.so"
    source.write_text(_SOURCE, encoding="utf-8")
    command = [compiler, "-shared", "-fPIC", "-O1", str(source), "-o", str(library)]
    subprocess.run(command, check=True, capture_output=True, timeout=HANGS_S)
    others = os.environ.get("LD_PRELOAD")
    return {"LD_PRELOAD": f"{library}:{others}" if others else str(library)}
