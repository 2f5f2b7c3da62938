"""Estimates the time of a submission from its number of rows, by a fit of earlier ones. Pure.

On a GPU many a plan takes what its launches take, be it for one row or for sixty; on a CPU each row takes its time.
Whoever took the first for the second would keep rows apart that cost nothing together, and never learn that they do.
So a submission of n rows is taken to need a + b·n: a weighted least squares fit in which older measurements count less
and less. Submissions of one size say nothing of b; for as long as there are no others, b keeps its share of a + b.
"""

from __future__ import annotations

from dataclasses import dataclass

_KEPT = 7 / 8  # what an earlier measurement counts, once there is a later one
_OWN_SHARE = 0.5  # b / (a + b), where nothing is known
_FORGOTTEN = 1 / 64  # of what was learnt of it, a measurement: it may have been learnt at a bad time
_LEAST_SHARE = 1 / 64
_MOST_BELIEVED = 1.5  # of the expected time
_WORTH_ITS_COMPANY = 0.5  # how much longer a submission may take than its launches alone, however long those take
_PRIOR_WEIGHT = 0.1  # of the share so far in a new one, as a variance of the number of rows, relative to its square


@dataclass
class RowCost:
    """The estimate for one program on one device. In ns; 0 before the first measurement."""

    weight: float = 0.0
    rows: float = 0.0  # the sums of weighted rows, times and their products
    time_ns: float = 0.0
    rows_rows: float = 0.0
    rows_time_ns: float = 0.0
    own_share: float = _OWN_SHARE
    most_rows: int = 0  # of a submission of late
    row_ns: int = 0  # what a row takes in the company that it usually has

    def measured(self, rows: int, device_ns: int) -> None:
        """A submission of `rows` rows took so long.

        A shorter time than expected is believed at once: what makes one take longer is seldom its own, for others use
        the processor too. If there were more rows than usual it rather says that they cost little together. Of a much
        longer time of no more rows than usual some is believed: that few took long would say that many take no longer.
        """
        level = 1.0
        if rows * self.weight <= self.rows and self.weight:
            expected_ns = max(self.expected_ns(rows), 1.0)
            level = min(device_ns / expected_ns, 1.0)
            device_ns = min(device_ns, round(_MOST_BELIEVED * expected_ns))
        self.weight = _KEPT * self.weight + 1
        self.rows = _KEPT * self.rows + rows
        self.rows_rows = _KEPT * self.rows_rows + rows * rows
        self.time_ns = _KEPT * level * self.time_ns + device_ns
        self.rows_time_ns = _KEPT * level * self.rows_time_ns + rows * device_ns
        self.most_rows = max(rows, self.most_rows - self.most_rows // 16)
        self.row_ns = round(self.time_ns / self.rows)
        self._learn_share()

    def expected_ns(self, rows: int) -> float:
        """What a submission of `rows` rows will take."""
        beside_ns, own_ns = self._split()
        return beside_ns + own_ns * rows

    def rows_within(self, bound_ns: int) -> int:
        """How many rows a submission may have that is to take no longer, or little longer than it takes anyway.

        As many as would fit if all that a row takes were its own may always go. Of those beyond there are at most twice
        as many as were together of late, so that an estimate is tried before it is relied upon; and if one is within
        the bound, two may try once what it costs to go together.
        """
        beside_ns, own_ns = self._split()
        if not own_ns:
            return max(2 * self.most_rows, 1)
        surely = int(bound_ns * self.rows / self.time_ns)
        if self.most_rows <= 1:
            return max(surely, 2 if beside_ns + own_ns <= bound_ns else 1)
        fitting = max((bound_ns - beside_ns) / own_ns, 1 + _WORTH_ITS_COMPANY * beside_ns / own_ns)
        return max(1, surely, min(int(fitting), 2 * self.most_rows))

    def _split(self) -> tuple[float, float]:
        """What a submission takes whatever its rows, and what each row takes."""
        if not self.weight:
            return 0.0, 0.0
        shares = self.rows / self.weight + (1 - self.own_share) / self.own_share
        own_ns = self.time_ns / self.weight / shares
        return own_ns * (1 - self.own_share) / self.own_share, own_ns

    def _learn_share(self) -> None:
        mean_rows, mean_ns = self.rows / self.weight, self.time_ns / self.weight
        if not mean_ns:
            return
        variance = max(self.rows_rows / self.weight - mean_rows**2, 0.0)
        covariance = self.rows_time_ns / self.weight - mean_rows * mean_ns
        prior = _PRIOR_WEIGHT * mean_rows**2
        _, known_ns = self._split()
        own_ns = (covariance + prior * known_ns) / (variance + prior)
        beside_ns = max(mean_ns - own_ns * mean_rows, 0.0)
        share = own_ns / (beside_ns + own_ns) if own_ns > 0 else 0.0
        share += _FORGOTTEN * (_OWN_SHARE - share)
        self.own_share = min(max(share, _LEAST_SHARE), 1.0)
