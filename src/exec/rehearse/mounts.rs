//! Creates the view: the machine's file systems, with writes going to a separate layer.
//!
//! Root gets an overlay over every file system, so that a script behaves as it would for real. An ordinary user may
//! not overlay `/` (there are mounts on it, and the kernel does not reveal what they cover): everything is read-only
//! then except home, working directory and temporary folders, which are overlays.

use super::sys;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Most mounts that are shown besides the root; a machine full of containers has hundreds that no command is about.
const MAX_MOUNTS: usize = 64;
/// Devices that store nothing.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// Folders for temporary files, of all users.
const TEMPORARY_FOLDERS: [&str; 2] = ["/tmp", "/var/tmp"];
/// Folders that are created anew instead of shown.
const REPLACED: [&str; 3] = ["/proc", "/sys", "/dev"];

/// A view under construction; its `root` will become the root directory.
pub(super) struct View {
    /// The path at which its root is mounted.
    pub root: PathBuf,
    /// Its overlays.
    pub layers: Vec<Layer>,
    /// The tmpfs that contains the upper layers.
    store: PathBuf,
}

/// An overlay.
pub(super) struct Layer {
    /// The folder below it, by its path on this machine.
    pub lower: PathBuf,
    /// The folder with the changes.
    pub upper: PathBuf,
}

impl View {
    /// Mounts a view in the folder `private`, in which `cwd` is writable as far as this user may write to it. Returns
    /// the reason as text if that fails.
    pub(super) fn build(private: &Path, cwd: &Path, writable: Option<&Path>) -> Result<Self, String> {
        let context = |what: &str| {
            let what = what.to_owned();
            move |e: io::Error| format!("{what}: {e}")
        };
        // mounts made here are not visible to other processes
        sys::mount(Path::new("none"), Path::new("/"), "", libc::MS_REC | libc::MS_PRIVATE, "")
            .map_err(context("mounts"))?;
        let store = private.join("store");
        fs::create_dir(&store).map_err(context("private folder"))?;
        let options = format!("mode=0700,size={},nr_inodes=65536", super::MAX_WRITTEN_BYTES);
        let flags = libc::MS_NOSUID | libc::MS_NODEV;
        sys::mount(Path::new("tmpfs"), &store, "tmpfs", flags, &options).map_err(context("tmpfs"))?;
        let root = store.join("root");
        fs::create_dir(&root).map_err(context("tmpfs"))?;
        let mut view = Self { root, layers: Vec::new(), store };
        if view.overlay(Path::new("/")).is_ok() {
            view.add_mounts(private);
        } else {
            view.make_read_only_except(cwd).map_err(|e| format!("overlay over {}: {e}", cwd.display()))?;
        }
        if let Some(folder) = writable {
            sys::mount(folder, &view.path_in_view(folder), "", libc::MS_BIND | libc::MS_REC, "")
                .map_err(context("bind"))?;
        }
        view.devices().map_err(context("/dev"))?;
        Ok(view)
    }

    /// Returns the writable places of the view; `None` if all of it is an overlay.
    pub(super) fn writable_places(&self, writable: Option<PathBuf>) -> Option<Vec<PathBuf>> {
        let overlays = self.layers.iter().map(|layer| layer.lower.clone());
        let own = ["/dev", "/proc"].map(PathBuf::from);
        let whole = self.layers.iter().any(|layer| layer.lower == Path::new("/"));
        (!whole).then(|| overlays.chain(writable).chain(own).collect())
    }

    /// Returns the path in the view of a path of this machine.
    fn path_in_view(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Shows the file system of a folder as an overlay, without the mounts on it.
    fn overlay(&mut self, lower: &Path) -> io::Result<()> {
        let number = self.layers.len();
        let (upper, work) = (self.store.join(format!("upper{number}")), self.store.join(format!("work{number}")));
        fs::create_dir_all(&upper)?;
        fs::create_dir_all(&work)?;
        // the root of an overlay has the attributes of its upper layer; an owner that this user cannot set stays
        // unchanged
        let meta = fs::metadata(lower)?;
        let _ = std::os::unix::fs::chown(&upper, Some(meta.uid()), Some(meta.gid()));
        fs::set_permissions(&upper, fs::Permissions::from_mode(meta.mode() & 0o7777))?;
        fs::File::open(&upper)?.set_modified(meta.modified()?)?;
        // paths may have characters that mount options cannot: the lower layer is given by its descriptor, the others
        // relatively
        let folder = fs::File::open(lower)?;
        std::env::set_current_dir(&self.store)?;
        let lowerdir = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&folder));
        let options = format!("lowerdir={lowerdir},upperdir=upper{number},workdir=work{number}");
        let at = self.path_in_view(lower);
        let flags = libc::MS_NOSUID | libc::MS_NODEV;
        // a user namespace requires `userxattr`; before Linux 6.6 a tmpfs supports only root's attributes
        sys::mount(Path::new("overlay"), &at, "overlay", flags, &format!("{options},userxattr"))
            .or_else(|_| sys::mount(Path::new("overlay"), &at, "overlay", flags, &options))?;
        self.layers.push(Layer { lower: lower.to_path_buf(), upper });
        Ok(())
    }

    /// Shows a folder or file and all mounts on it, read-only.
    fn bind_read_only(&self, path: &Path) -> io::Result<()> {
        let at = self.path_in_view(path);
        sys::mount(path, &at, "", libc::MS_BIND | libc::MS_REC, "")?;
        let attributes = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
        sys::set_attributes(&at, attributes, true)
    }

    /// Shows the file systems that are mounted below the root. One that cannot be shown is left out.
    fn add_mounts(&mut self, private: &Path) {
        let mut whole: Vec<PathBuf> = Vec::new();
        for point in mount_points() {
            let own = REPLACED.iter().any(|own| point.starts_with(own));
            // a pipe is writable even on a read-only mount
            let plain = fs::metadata(&point).is_ok_and(|meta| meta.is_dir() || meta.is_file());
            if !plain || own || point.starts_with(private) || whole.iter().any(|shown| point.starts_with(shown)) {
                continue;
            }
            if !point.is_dir() || self.overlay(&point).is_err() {
                // a mount that could not be made read-only must not stay
                if self.bind_read_only(&point).is_err() {
                    let _ = sys::unmount(&self.path_in_view(&point));
                }
                whole.push(point);
            }
        }
        if self.bind_read_only(Path::new("/sys")).is_err() {
            let _ = sys::unmount(&self.path_in_view(Path::new("/sys")));
        }
    }

    /// Makes everything read-only except the folders that this user writes to.
    fn make_read_only_except(&mut self, cwd: &Path) -> io::Result<()> {
        sys::mount(Path::new("/"), &self.root, "", libc::MS_BIND | libc::MS_REC, "")?;
        let attributes = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
        sys::set_attributes(&self.root, attributes, true)?;
        let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
        let places = home.into_iter().chain(TEMPORARY_FOLDERS.iter().map(PathBuf::from)).chain([cwd.to_path_buf()]);
        for place in places {
            let covered =
                self.layers.iter().any(|layer| place.starts_with(&layer.lower) && is_own(&place, &layer.lower));
            if covered || place == Path::new("/") {
                continue;
            }
            // the working directory is last: it must be writable even if home could not be overlaid
            match self.overlay(&place) {
                Err(e) if place == cwd && rustix::fs::access(cwd, rustix::fs::Access::WRITE_OK).is_ok() => {
                    return Err(e);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Creates a separate `/dev`, as read-only mounts do not affect devices.
    fn devices(&self) -> io::Result<()> {
        let dev = self.path_in_view(Path::new("/dev"));
        let flags = libc::MS_NOSUID | libc::MS_NOEXEC;
        sys::mount(Path::new("tmpfs"), &dev, "tmpfs", flags, "mode=0755,size=1m,nr_inodes=256")?;
        for name in DEVICES {
            let (device, at) = (Path::new("/dev").join(name), dev.join(name));
            if device.exists() {
                fs::write(&at, "")?;
                sys::mount(&device, &at, "", libc::MS_BIND, "")?;
            }
        }
        for (name, target) in [
            ("fd", "/proc/self/fd"),
            ("stdin", "/proc/self/fd/0"),
            ("stdout", "/proc/self/fd/1"),
            ("stderr", "/proc/self/fd/2"),
        ] {
            symlink(target, dev.join(name))?;
        }
        let shm = dev.join("shm");
        fs::create_dir(&shm)?;
        fs::set_permissions(&shm, fs::Permissions::from_mode(0o1777))
    }
}

/// True if every folder from below `top` down to `place` belongs to this user. Folders of other users cannot be
/// copied to an upper layer, so nothing in them would be writable.
fn is_own(place: &Path, top: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    // in a user namespace all other users appear as this number, as does the real user `nobody`
    const OVERFLOW: u32 = 65534;
    user != OVERFLOW
        && place.ancestors().take_while(|p| *p != top).all(|p| fs::metadata(p).is_ok_and(|m| m.uid() == user))
}

/// Returns the mount points except `/`, in the order of mounting. Source: proc_pid_mountinfo(5).
fn mount_points() -> Vec<PathBuf> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut points: Vec<PathBuf> = Vec::new();
    for line in text.lines() {
        let Some(point) = line.split(' ').nth(4).map(unescape) else { continue };
        // a later mount hides an earlier one at the same point
        points.retain(|p| *p != point);
        if point != Path::new("/") {
            points.push(point);
        }
    }
    points.truncate(MAX_MOUNTS);
    points
}

/// Decodes the octal escapes of blanks, tabs, line ends and backslashes.
fn unescape(field: &str) -> PathBuf {
    let mut plain = String::with_capacity(field.len());
    let mut rest = field;
    while let Some((before, after)) = rest.split_once('\\') {
        plain.push_str(before);
        match after.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(char::from(byte));
                rest = &after[3..];
            }
            None => {
                plain.push('\\');
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    PathBuf::from(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_with_blanks_are_read() {
        assert_eq!(unescape(r"/media/my\040disk\134x"), Path::new(r"/media/my disk\x"));
        assert_eq!(unescape(r"/odd\9"), Path::new(r"/odd\9"));
        assert_eq!(unescape("/plain"), Path::new("/plain"));
    }

    #[test]
    fn proc_is_a_mount_point_and_the_root_is_not() {
        let points = mount_points();
        assert!(points.iter().any(|p| p == Path::new("/proc")), "{points:?}");
        assert!(!points.iter().any(|p| p == Path::new("/")));
    }
}
