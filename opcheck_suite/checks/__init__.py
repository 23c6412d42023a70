"""The checks, one a file, in folders by family. Discovered; there is no list to edit."""
