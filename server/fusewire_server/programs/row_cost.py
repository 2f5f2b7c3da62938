"""Estimates the time of a submission from its number of rows, by a fit to earlier submissions. No I/O, no clock.

On a GPU a submission often takes the time of its launches, which is the same for one row and for sixty rows. On a CPU
each row adds its own time. If the estimate for a row were the measured time divided by the number of rows, a row that
adds no time to a submission would look expensive. Such rows would be kept in separate submissions, and the estimate
would never be corrected. So the time of n rows is estimated as a + b·n, by a weighted least squares fit in which older
measurements count less and less. Submissions that all have the same number of rows do not determine b; until there is
another number of rows, the share of b in a + b stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

_KEPT = 7 / 8  # the factor that each new measurement applies to the weight of earlier ones
_OWN_SHARE = 0.5  # b / (a + b) before anything is known
# Each measurement moves the learnt share of b by this part of its distance back towards `_OWN_SHARE`, because the share
# may have been learnt when other work disturbed the measurements.
_FORGOTTEN = 1 / 64
_LEAST_SHARE = 1 / 64
_MOST_BELIEVED = 1.5  # the most that a measured time counts, as a multiple of the expected time
# Rows beyond the first may join a submission even past the time bound, if together they add at most this share of the
# time of its launches.
_WORTH_ITS_COMPANY = 0.5
# How much a new fit trusts the known share of b. If the variance of the number of rows is this factor times the square
# of its mean, the measurements and the known share count equally.
_PRIOR_WEIGHT = 0.1


@dataclass
class RowCost:
    """The estimate for one program on one device. Times in ns; 0 before the first measurement."""

    weight: float = 0.0
    rows: float = 0.0  # this and the next three: weighted sums of rows, times and their products
    time_ns: float = 0.0
    rows_rows: float = 0.0
    rows_time_ns: float = 0.0
    own_share: float = _OWN_SHARE
    most_rows: int = 0  # the most rows of a recent submission
    row_ns: int = 0  # time of a row in a submission of the usual number of rows

    def measured(self, rows: int, device_ns: int) -> None:
        """Adds the measurement that a submission of `rows` rows took `device_ns`.

        If the submission has no more rows than the mean, the measured time is compared with the expected time. If the
        measured time is shorter, earlier times are scaled down in the same ratio at once, because longer times often
        have other causes, such as other users of the processor. If the measured time is longer, it counts as at most
        `_MOST_BELIEVED` times the expected time. Otherwise one long time of few rows would make the fit conclude that
        more rows take no more time.

        If the submission has more rows than the mean, the measured time counts as it is, because it shows how much
        time each further row adds.
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
        """Returns the expected time of a submission of `rows` rows, in ns."""
        beside_ns, own_ns = self.split()
        return beside_ns + own_ns * rows

    def rows_within(self, bound_ns: int) -> int:
        """Returns how many rows a submission may have to take at most `bound_ns`, or little more than its launches.

        The number of rows that would fit if the time were proportional to it is always allowed. A larger number is at
        most twice the number of rows of recent submissions, so that an estimate is tested before it is relied on.
        If recent submissions had one row and a single row is within the bound, two may go, to measure what rows cost
        together.
        """
        beside_ns, own_ns = self.split()
        if not own_ns:
            return max(2 * self.most_rows, 1)
        surely = int(bound_ns * self.rows / self.time_ns)
        if self.most_rows <= 1:
            return max(surely, 2 if beside_ns + own_ns <= bound_ns else 1)
        fitting = max((bound_ns - beside_ns) / own_ns, 1 + _WORTH_ITS_COMPANY * beside_ns / own_ns)
        return max(1, surely, min(int(fitting), 2 * self.most_rows))

    def split(self) -> tuple[float, float]:
        """Returns the time that a submission takes whatever its rows, and the time that each row adds, in ns."""
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
        _, known_ns = self.split()
        own_ns = (covariance + prior * known_ns) / (variance + prior)
        beside_ns = max(mean_ns - own_ns * mean_rows, 0.0)
        share = own_ns / (beside_ns + own_ns) if own_ns > 0 else 0.0
        share += _FORGOTTEN * (_OWN_SHARE - share)
        self.own_share = min(max(share, _LEAST_SHARE), 1.0)
