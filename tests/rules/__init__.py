"""Rules of registration: namespaces, schema inference."""
