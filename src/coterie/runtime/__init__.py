"""What all rooms may use: random numbers, processes, progress, versions, hints."""
