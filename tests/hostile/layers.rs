//! Image layers made to exhaust memory, inodes, disk or stack, or to write outside of their tree.
