"""What came out of a training: curves, confusion, calibration, residuals, importance."""
