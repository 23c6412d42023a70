"""Where the inputs of checks come from: fresh copies of samples, and variants derived from them."""
