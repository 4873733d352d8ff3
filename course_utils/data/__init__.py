"""Data: `regression` draws it; the other readers find it in the folder data/ or through the `registry`."""
