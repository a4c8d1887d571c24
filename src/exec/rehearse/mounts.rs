//! The view: the machine's file systems, with what is written kept apart.
//!
//! Root gets an overlay over every file system, so that a script fares as it would for real. An ordinary user may not
//! lay one over `/` (other mounts lie on it, and the kernel does not let them be looked under): everything is
//! read-only then but home, working directory and temporary folders, which are overlays.

use super::sys;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Mounts looked at, beyond the root: a machine full of containers has hundreds that nobody's command is about.
const MAX_MOUNTS: usize = 64;
/// Devices that remember nothing.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// For temporary files, whoever one is.
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];
/// Made anew instead of shown.
const OWN: [&str; 3] = ["/proc", "/sys", "/dev"];

/// A view under construction; `root` is to become the root.
pub(super) struct View {
    /// Where its root is mounted.
    pub root: PathBuf,
    /// What it is made of.
    pub layers: Vec<Layer>,
    /// The tmpfs that holds the upper sides.
    store: PathBuf,
}

/// An overlay.
pub(super) struct Layer {
    /// The folder that is shown, by its path on this machine.
    pub lower: PathBuf,
    /// What was written over it.
    pub upper: PathBuf,
}

impl View {
    /// Mounts a view in the folder `private`, in which `cwd` can be written to as far as this user may.
    /// What stands in the way is told in words.
    pub(super) fn build(private: &Path, cwd: &Path, writable: Option<&Path>) -> Result<Self, String> {
        let told = |what: &str| {
            let what = what.to_owned();
            move |e: io::Error| format!("{what}: {e}")
        };
        // What is mounted here is seen by nobody else.
        sys::mount(Path::new("none"), Path::new("/"), "", libc::MS_REC | libc::MS_PRIVATE, "")
            .map_err(told("mounts"))?;
        let store = private.join("store");
        fs::create_dir(&store).map_err(told("private folder"))?;
        let options = format!("mode=0700,size={},nr_inodes=65536", super::ROOM);
        let flags = libc::MS_NOSUID | libc::MS_NODEV;
        sys::mount(Path::new("tmpfs"), &store, "tmpfs", flags, &options).map_err(told("tmpfs"))?;
        let root = store.join("root");
        fs::create_dir(&root).map_err(told("tmpfs"))?;
        let mut view = Self { root, layers: Vec::new(), store };
        if view.overlay(Path::new("/")).is_ok() {
            view.add_mounts(private);
        } else {
            view.read_only_but(cwd).map_err(|e| format!("overlay over {}: {e}", cwd.display()))?;
        }
        if let Some(folder) = writable {
            sys::mount(folder, &view.inside(folder), "", libc::MS_BIND | libc::MS_REC, "").map_err(told("bind"))?;
        }
        view.devices().map_err(told("/dev"))?;
        Ok(view)
    }

    /// Where in the view may be written; `None` where all of it is an overlay.
    pub(super) fn places(&self, writable: Option<PathBuf>) -> Option<Vec<PathBuf>> {
        let overlays = self.layers.iter().map(|layer| layer.lower.clone());
        let own = ["/dev", "/proc"].map(PathBuf::from);
        let whole = self.layers.iter().any(|layer| layer.lower == Path::new("/"));
        (!whole).then(|| overlays.chain(writable).chain(own).collect())
    }

    /// Where a path of this machine lies in the view.
    fn inside(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Shows the file system of a folder as an overlay, without the mounts on it.
    fn overlay(&mut self, lower: &Path) -> io::Result<()> {
        let number = self.layers.len();
        let (upper, work) = (self.store.join(format!("upper{number}")), self.store.join(format!("work{number}")));
        fs::create_dir_all(&upper)?;
        fs::create_dir_all(&work)?;
        // An overlay's root looks like its upper side's. An owner that this user cannot give away stays.
        let meta = fs::metadata(lower)?;
        let _ = std::os::unix::fs::chown(&upper, Some(meta.uid()), Some(meta.gid()));
        fs::set_permissions(&upper, fs::Permissions::from_mode(meta.mode() & 0o7777))?;
        fs::File::open(&upper)?.set_modified(meta.modified()?)?;
        // Paths may hold what mount options cannot: the lower side goes by its descriptor, the others by relative names.
        let folder = fs::File::open(lower)?;
        std::env::set_current_dir(&self.store)?;
        let lowerdir = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&folder));
        let options = format!("lowerdir={lowerdir},upperdir=upper{number},workdir=work{number}");
        let at = self.inside(lower);
        let flags = libc::MS_NOSUID | libc::MS_NODEV;
        // `userxattr` is what a user namespace needs; before Linux 6.6 a tmpfs has no such attributes, but root's.
        sys::mount(Path::new("overlay"), &at, "overlay", flags, &format!("{options},userxattr"))
            .or_else(|_| sys::mount(Path::new("overlay"), &at, "overlay", flags, &options))?;
        self.layers.push(Layer { lower: lower.to_path_buf(), upper });
        Ok(())
    }

    /// Shows a folder or file and all mounts on it, read-only.
    fn show(&self, path: &Path) -> io::Result<()> {
        let at = self.inside(path);
        sys::mount(path, &at, "", libc::MS_BIND | libc::MS_REC, "")?;
        let attributes = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
        sys::set_attributes(&at, attributes, true)
    }

    /// The file systems that are mounted on the root's. One that cannot be shown is not there.
    fn add_mounts(&mut self, private: &Path) {
        let mut whole: Vec<PathBuf> = Vec::new();
        for point in mount_points() {
            let own = OWN.iter().any(|own| point.starts_with(own));
            // into a pipe that is shown can be written, read-only or not
            let plain = fs::metadata(&point).is_ok_and(|meta| meta.is_dir() || meta.is_file());
            if !plain || own || point.starts_with(private) || whole.iter().any(|shown| point.starts_with(shown)) {
                continue;
            }
            if !point.is_dir() || self.overlay(&point).is_err() {
                // Half of a mount that could not be made read-only is worse than none.
                if self.show(&point).is_err() {
                    let _ = sys::unmount(&self.inside(&point));
                }
                whole.push(point);
            }
        }
        if self.show(Path::new("/sys")).is_err() {
            let _ = sys::unmount(&self.inside(Path::new("/sys")));
        }
    }

    /// Everything read-only but what this user writes to.
    fn read_only_but(&mut self, cwd: &Path) -> io::Result<()> {
        sys::mount(Path::new("/"), &self.root, "", libc::MS_BIND | libc::MS_REC, "")?;
        let attributes = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
        sys::set_attributes(&self.root, attributes, true)?;
        let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
        let places = home.into_iter().chain(TEMPORARY.iter().map(PathBuf::from)).chain([cwd.to_path_buf()]);
        for place in places {
            let covered =
                self.layers.iter().any(|layer| place.starts_with(&layer.lower) && is_own(&place, &layer.lower));
            if covered || place == Path::new("/") {
                continue;
            }
            // The working directory comes last: if home had to be left out, there is still that.
            match self.overlay(&place) {
                Err(e) if place == cwd && rustix::fs::access(cwd, rustix::fs::Access::WRITE_OK).is_ok() => {
                    return Err(e);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A `/dev` of our own: a device takes no notice of read-only mounts.
    fn devices(&self) -> io::Result<()> {
        let dev = self.inside(Path::new("/dev"));
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

/// True if every folder from below `top` down to `place` is this user's: others' folders cannot be copied to an upper
/// side, so that nothing in them could be written.
fn is_own(place: &Path, top: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    // In a user namespace everybody else looks like this, and so does who really is nobody.
    const OVERFLOW: u32 = 65534;
    user != OVERFLOW
        && place.ancestors().take_while(|p| *p != top).all(|p| fs::metadata(p).is_ok_and(|m| m.uid() == user))
}

/// Where something is mounted, `/` not counted, in the order in which it was. Source: proc_pid_mountinfo(5).
fn mount_points() -> Vec<PathBuf> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut points: Vec<PathBuf> = Vec::new();
    for line in text.lines() {
        let Some(point) = line.split(' ').nth(4).map(unescaped) else { continue };
        // What was mounted over something else hides it.
        points.retain(|p| *p != point);
        if point != Path::new("/") {
            points.push(point);
        }
    }
    points.truncate(MAX_MOUNTS);
    points
}

/// Undoes the octal escapes of blanks, tabs, line ends and backslashes.
fn unescaped(field: &str) -> PathBuf {
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
        assert_eq!(unescaped(r"/media/my\040disk\134x"), Path::new(r"/media/my disk\x"));
        assert_eq!(unescaped(r"/odd\9"), Path::new(r"/odd\9"));
        assert_eq!(unescaped("/plain"), Path::new("/plain"));
    }

    #[test]
    fn the_root_is_no_point_on_itself_and_proc_is_found() {
        let points = mount_points();
        assert!(points.iter().any(|p| p == Path::new("/proc")), "{points:?}");
        assert!(!points.iter().any(|p| p == Path::new("/")));
    }
}
