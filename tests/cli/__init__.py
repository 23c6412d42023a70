"""The command line, a file for each verb."""
