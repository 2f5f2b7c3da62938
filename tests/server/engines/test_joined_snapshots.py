"""What several engines tell is one server's: counts add up, the longest wait counts, a program is told once."""

from __future__ import annotations

from dataclasses import replace

from fusewire_server.engines.joined_snapshots import DeviceSnapshot, joined_snapshots, left_of
from fusewire_server.inspect.metrics import exposition
from fusewire_server.inspect.snapshots.histogram import Bucket, Histogram
from fusewire_server.inspect.snapshots.program_view import ProgramDetail
from fusewire_server.inspect.snapshots.snapshot import Snapshot
from fusewire_server.inspect.snapshots.stats import KernelWaits, Memory, Queue
from fusewire_server.inspect.snapshots.tenant_account import TenantAccount
from fusewire_server.inspect.snapshots.totals import Totals
from tests.server.inspect.examples import KERNEL_WAITS, SESSION, SNAPSHOT, STATS

OWN = Snapshot(replace(STATS, instance="own", is_ready=False, totals=Totals(), sessions=0), taken_at_ns=5)
OWN = replace(OWN, stats=replace(OWN.stats, phases=type(STATS.phases)(), rows_per_launch=Histogram()))


def both(first: Snapshot, second: Snapshot, *ended: Snapshot) -> Snapshot:
    return joined_snapshots(OWN, (DeviceSnapshot(0, first), DeviceSnapshot(1, second)), ended)


def with_stats(**changed: object) -> Snapshot:
    return replace(SNAPSHOT, stats=replace(STATS, **changed))  # type: ignore[arg-type]


def test_counts_add_up() -> None:
    stats = both(SNAPSHOT, SNAPSHOT).stats
    assert stats.instance == "own"
    assert stats.totals.ops == 2 * STATS.totals.ops
    assert stats.totals.failures == {"bad_shape": 2}
    assert stats.phases.device.total_ns == 2 * STATS.phases.device.total_ns
    assert stats.rows_per_launch == Histogram((Bucket(1, 2), Bucket(2, 2)), 6)
    assert stats.backend.memory_bytes == 2 * STATS.backend.memory_bytes
    assert stats.backend.device == "2 × 2 cores"


def test_buckets_that_only_one_engine_has_are_kept_in_order() -> None:
    other = with_stats(rows_per_launch=Histogram((Bucket(2, 1), Bucket(8, 4)), 30))
    assert both(other, SNAPSHOT).stats.rows_per_launch == Histogram((Bucket(1, 1), Bucket(2, 2), Bucket(8, 4)), 33)


def test_the_longest_wait_counts() -> None:
    short = with_stats(queue=Queue(1, 2, 0.5), kernel_waits=KERNEL_WAITS)
    long = with_stats(queue=Queue(3, 4, 7.5), kernel_waits=replace(KERNEL_WAITS, oldest_s=30.0))
    stats = both(short, long).stats
    assert stats.queue == Queue(4, 6, 7.5)
    assert (stats.kernel_waits.kernels, stats.kernel_waits.oldest_s) == (2, 30.0)
    assert len(stats.kernel_waits.oldest) == 2
    assert both(SNAPSHOT, SNAPSHOT).stats.kernel_waits == KernelWaits()


def test_a_server_is_ready_if_one_engine_is() -> None:
    unready = with_stats(is_ready=False)
    assert both(unready, SNAPSHOT).stats.is_ready
    assert not both(unready, unready).stats.is_ready
    assert both(SNAPSHOT, with_stats(trouble="a full disk")).stats.trouble == "a full disk"


def test_sessions_are_told_one_after_another_with_their_devices() -> None:
    on_1 = replace(SESSION, session="ffffffffffff", device=1)
    assert both(SNAPSHOT, replace(SNAPSHOT, sessions=(on_1,))).sessions == (*SNAPSHOT.sessions, on_1)


def test_a_program_that_both_know_is_told_once_as_it_is_where_it_has_come_further() -> None:
    known = SNAPSHOT.programs[0]
    further = replace(known, program=replace(known.program, tier=2, hits=5))
    before = ProgramDetail(replace(known.program, tier=0, hits=3))
    for pair in ((further, before), (before, further)):
        first, second = [replace(SNAPSHOT, programs=(each,)) for each in pair]
        (detail,) = both(first, second).programs
        assert (detail.program.tier, detail.program.hits, detail.compiled) == (2, 8, further.compiled)
    assert both(SNAPSHOT, SNAPSHOT).stats.programs == len(SNAPSHOT.programs)


def test_tenants_are_joined() -> None:
    joined = both(SNAPSHOT, SNAPSHOT)
    for tenant, account in SNAPSHOT.tenants.items():
        assert joined.tenants[tenant] == TenantAccount(2 * account.loop_ns, 2 * account.device_ns)
    assert joined.tenant_host_bytes == {name: 2 * size for name, size in SNAPSHOT.tenant_host_bytes.items()}


def test_counters_do_not_fall_when_an_engine_ends() -> None:
    before = both(SNAPSHOT, SNAPSHOT)
    after = joined_snapshots(
        OWN, (DeviceSnapshot(0, SNAPSHOT), DeviceSnapshot(1, None, "it broke")), (left_of(SNAPSHOT),)
    )
    assert after.stats.totals == before.stats.totals
    assert after.stats.phases == before.stats.phases
    assert after.tenants == before.tenants
    assert (after.stats.sessions, len(after.sessions)) == (STATS.sessions, len(SNAPSHOT.sessions))
    assert after.stats.memory == STATS.memory == Memory()


def test_what_is_left_of_several_engines_of_a_device_adds_up() -> None:
    left = left_of(SNAPSHOT, left_of(SNAPSHOT))
    assert left.stats.totals == both(SNAPSHOT, SNAPSHOT).stats.totals
    assert left.tenants == both(SNAPSHOT, SNAPSHOT).tenants
    assert left.stats.sessions == 0


def test_each_device_is_told_with_its_own_figures_or_why_it_has_none() -> None:
    busy = with_stats(sessions=4, memory=Memory(live_bytes=77, pool_bytes=5))
    devices = joined_snapshots(OWN, (DeviceSnapshot(0, busy), DeviceSnapshot(3, None, "it broke"))).stats.devices
    assert [(each.number, each.is_ready, each.trouble) for each in devices] == [(0, True, ""), (3, False, "it broke")]
    assert (devices[0].sessions, devices[0].live_bytes, devices[0].pool_bytes) == (4, 77, 5)


def test_without_any_engine_the_server_is_unready() -> None:
    joined = joined_snapshots(OWN, (DeviceSnapshot(0, None, "a"), DeviceSnapshot(1, None, "b")))
    assert not joined.stats.is_ready
    assert (len(joined.sessions), len(joined.programs)) == (0, 0)
    assert [each.trouble for each in joined.stats.devices] == ["a", "b"]
    assert joined.stats.devices_unready == 2


def test_the_metrics_tell_the_figures_of_each_device() -> None:
    lines = exposition(both(SNAPSHOT, with_stats(sessions=9)), 0.0).decode().splitlines()
    assert 'fusewire_devices_sessions{number="1"} 9.0' in lines
    assert 'fusewire_devices_ready{number="0"} 1.0' in lines
    assert not any(
        line.startswith("fusewire_devices_sessions{") for line in exposition(SNAPSHOT, 0.0).decode().splitlines()
    )
