"""The examples of course 000."""
