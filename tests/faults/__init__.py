"""What is tried on purpose: kills, signals, full disks, damaged and hostile files."""
