"""Exact solutions where X is the identity: total variation and trends."""
