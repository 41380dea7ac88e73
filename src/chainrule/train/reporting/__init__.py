"""The sections of the page about a fitted network, a file for each."""
