"""What a network is: its layers, what they cost, how they are connected."""
