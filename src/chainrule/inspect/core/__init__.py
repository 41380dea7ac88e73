"""What every instrument is made of: results, the registry, traces of a forward pass, pages."""
