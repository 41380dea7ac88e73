"""From raw data to a trained, evaluated network, with sensible choices where none are given."""
