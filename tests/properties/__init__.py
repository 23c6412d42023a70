"""Property-based tests over the reference ops. `OPCHECK_EXAMPLES=20000` makes them longer."""
