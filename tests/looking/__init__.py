"""What the tests of instruments share: networks to look into, a record for every instrument, and
what is asked of every drawing."""
