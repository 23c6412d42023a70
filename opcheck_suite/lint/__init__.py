"""`opcheck lint`: deprecated APIs and reserved namespaces in sources, which are read and never run.

`rules` is the table of what is reported, `python` and `cpp` read a language each, `run` puts it together.
"""
