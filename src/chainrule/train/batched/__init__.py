"""Many networks trained as one batched job."""
