"""The pages of the atlas: an index, a page for every entry, the names they use, a JSON file."""
