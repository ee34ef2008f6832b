//! Image layers made to exhaust memory, inodes, disk or stack, or to write outside of their tree.

mod archive;
mod archives;
mod bombs;
mod confinement;
mod depth;
mod escapes;
mod full_disks;
mod jobs;
mod store;
mod whole_images;
