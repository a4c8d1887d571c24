"""The package for Debian and Ubuntu."""

import email.utils
import gzip
import hashlib
import os
import shutil
import tempfile
import time
from pathlib import Path

import facts
import tree

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# folders that Debian keeps for packages
MOVED = {"share/zsh/site-functions/": "share/zsh/vendor-completions/"}
DESCRIPTION = """ Says the command for what is asked in plain words, for the shell and the
 programs of the machine it runs on, from a small language model on its own
 CPU. Each command is parsed, checked against the installed manuals and rated
 before it is shown. It is not run unless that is asked for.
 .
 The model, about 1 GB, is fetched at the first request."""

OVERRIDES = """# The path stands in errors of apt that `caro fix` knows; the program never opens what is there.
caro: uses-dpkg-database-directly
"""


def make(root, package, target, date, out):
    """Writes the package and gives its path."""
    architecture = ARCHITECTURES[target.split("-")[0]]
    version = package["version"].replace("-", "~")
    # no address of the maintainers is published: whoever builds for others sets Debian's own variables
    who = f"{os.environ.get('DEBFULLNAME', 'caro maintainers')} <{os.environ.get('DEBEMAIL', 'maintainers@caro.invalid')}>"
    when = email.utils.formatdate(date)
    with tempfile.TemporaryDirectory() as work:
        top = Path(work, "package")
        for inside, file in tree.files(root):
            for old, new in MOVED.items():
                inside = inside.replace(old, new)
            if inside.startswith("share/man/"):
                tree.write(top / f"usr/{inside}.gz", packed(file.read_bytes()))
            elif file.name == "THIRD-PARTY.txt":
                tree.write(top / f"usr/{inside}.gz", packed(file.read_bytes()))
            # Debian has the text of our licence, and the installer is for systems without packages
            elif file.name != "LICENSE" and not inside.startswith("lib/"):
                tree.write(top / "usr" / inside, file.read_bytes())
        doc = top / "usr/share/doc/caro"
        tree.write(doc / "copyright", copyright_file(time.gmtime(date).tm_year).encode())
        tree.write(top / "usr/share/lintian/overrides/caro", OVERRIDES.encode())
        log = f"caro ({version}) unstable; urgency=medium\n\n  * Version {package['version']}.\n\n -- {who}  {when}\n"
        tree.write(doc / "changelog.gz", packed(log.encode()))
        files = tree.files(top)
        size = sum(-(-file.stat().st_size // 1024) for _, file in files)
        control = (
            f"Package: caro\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: {who}\nInstalled-Size: {size}\n"
            f"Depends: {dependencies(top / 'usr/bin/caro')}\nRecommends: man-db\nSection: utils\nPriority: optional\n"
            f"Description: shell commands from plain words, offline\n{DESCRIPTION}\n"
        )
        sums = "".join(f"{hashlib.md5(file.read_bytes()).hexdigest()}  {inside}\n" for inside, file in files)
        tree.write(top / "DEBIAN/control", control.encode())
        tree.write(top / "DEBIAN/md5sums", sums.encode())
        for path in [top, *top.rglob("*")]:
            path.chmod(0o755 if path.is_dir() or path == top / "usr/bin/caro" else 0o644)
        path = out / f"caro_{version}_{architecture}.deb"
        # with more threads the bytes depend on how many there are
        env = {"SOURCE_DATE_EPOCH": str(date), "DPKG_DEB_THREADS_MAX": "1"}
        facts.run("dpkg-deb", "--root-owner-group", "-Zxz", "--build", top, path, env=env)
    return path


def dependencies(program):
    """What the package must depend on, from the symbols that the program asks for."""
    with tempfile.TemporaryDirectory() as work:
        tree.write(Path(work, "debian/control"), b"Source: caro\n\nPackage: caro\nArchitecture: any\n")
        # where a package's own tools would have put it; elsewhere it warns
        copy = Path(work, "debian/caro/usr/bin/caro")
        copy.parent.mkdir(parents=True)
        Path(work, "debian/caro/DEBIAN").mkdir()
        shutil.copy(program, copy)
        said = facts.run("dpkg-shlibdeps", "-O", f"-e{copy}", cwd=work).decode()
    found = said.strip().removeprefix("shlibs:Depends=")
    if "libc6 (>= " not in found:
        facts.fail(f"dpkg-shlibdeps says {said!r}", "it knows the libraries of Debian's own packages only")
    return found


def packed(data):
    return gzip.compress(data, 9, mtime=0)


def copyright_file(year):
    return f"""Copyright: {year} the authors of caro
License: Apache-2.0

On Debian systems, the full text of the Apache License, version 2.0, is in
/usr/share/common-licenses/Apache-2.0.

The licences of the libraries that are linked into the program are in
/usr/share/doc/caro/THIRD-PARTY.txt.gz.
"""
