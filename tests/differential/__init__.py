"""Every public function that NumPy has too, on drawn operands: NumPy's result, in every manner of running."""
