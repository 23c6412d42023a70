"""`opcheck lint`."""
