"""Rules of registration: namespaces, schema inference. `OPCHECK_EXAMPLES=20000` makes the property tests longer."""
