"""The vertices of Newton polyhedra, exactly: the points that the option ``newton`` keeps."""
