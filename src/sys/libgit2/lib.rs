//! The settings of libgit2, which are global to the process.
#![expect(
    unsafe_code,
    reason = "libgit2's options are plain variables, which git2 and libgit2-sys leave to the caller to set in time"
)]

use git2::ConfigLevel;
use std::sync::Once;

/// libgit2 maps packs in windows of this size; its own default is 1 GiB.
const WINDOW: usize = 1 << 20;
/// All windows together.
const MAPPED: usize = 32 << 20;
/// Objects kept in memory, all repositories together.
const CACHE: libc::ssize_t = 2 << 20;
/// Objects in one pack.
const PACK_OBJECTS: libc::size_t = 4_000_000;
/// Size of one object that a delta makes.
const OBJECT_SIZE: libc::size_t = 256 << 20;

/// Configures libgit2 once per process: it ignores all configuration files, opens repositories of any owner (it executes nothing in them),
/// uses little memory, and refuses packs that need much. To be called before anything else of libgit2.
pub fn initialise() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for level in [ConfigLevel::ProgramData, ConfigLevel::System, ConfigLevel::XDG, ConfigLevel::Global] {
            // SAFETY: only this closure sets options, and it runs once, before any other use of libgit2 in this process.
            unsafe { git2::opts::set_search_path(level, "") }.ok();
        }
        // SAFETY: as above. The commands take values of exactly these types.
        unsafe {
            git2::opts::set_verify_owner_validation(false).ok();
            git2::opts::set_mwindow_size(WINDOW).ok();
            git2::opts::set_mwindow_mapped_limit(MAPPED).ok();
            git2::opts::set_cache_max_size(CACHE).ok();
            libgit2_sys::git_libgit2_opts(libgit2_sys::GIT_OPT_SET_PACK_MAX_OBJECTS as libc::c_int, PACK_OBJECTS);
            libgit2_sys::git_libgit2_opts(libgit2_sys::GIT_OPT_SET_PACK_MAX_OBJECT_SIZE as libc::c_int, OBJECT_SIZE);
        }
    });
}
