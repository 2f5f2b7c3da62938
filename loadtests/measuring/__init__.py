"""What every scenario uses: figures, timing, percentiles and worker processes."""
