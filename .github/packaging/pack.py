#!/usr/bin/env python3
"""Packs a binary of caro that was built already: pack.py BINARY FOLDER [--features metal] [FORM...]

FORM is archive, deb or wheel; without one, all that the binary's system has. FOLDER gets them, and SHA256SUMS.
"""

import argparse
import hashlib
import tempfile
from pathlib import Path

import archive
import deb
import facts
import tree
import wheel


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("binary", type=Path)
    words.add_argument("folder", type=Path)
    words.add_argument("form", nargs="*", help="archive, deb, wheel; default: all that the system has")
    words.add_argument("--features", default="", help="those that the binary was built with")
    given = words.parse_args()
    if not given.binary.is_file():
        facts.fail(f"{given.binary} is no file", "build it: cargo build --locked --profile dist")
    binary, out = given.binary.resolve(), given.folder.resolve()
    target = facts.target(binary)
    forms = given.form or ["archive", "wheel"] + ["deb"] * ("linux" in target)
    if unknown := set(forms) - {"archive", "wheel", "deb"}:
        words.error(f"{', '.join(sorted(unknown))}: none of archive, deb, wheel")
    if "deb" in forms and "linux" not in target:
        words.error(f"a .deb is for Linux; the binary is for {target}")
    meta = facts.metadata(target, given.features)
    package, date = facts.crate(meta), facts.source_date()
    out.mkdir(parents=True, exist_ok=True)
    made = []
    with tempfile.TemporaryDirectory() as work:
        root = Path(work, "tree")
        tree.make(binary, root, meta)
        version = tree.says(next(root.glob("bin/caro*")), "--version").decode().strip()
        if version != f"caro {package['version']}":
            facts.fail(f"the binary is {version}, the source is {package['version']}", "build it from this source")
        if "archive" in forms:
            made.append(archive.make(root, f"caro-{package['version']}-{target}", target, date, out))
        if "wheel" in forms:
            made.append(wheel.make(root, package, binary, date, out))
        if "deb" in forms:
            made.append(deb.make(root, package, target, date, out))
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(made)]
    (out / "SHA256SUMS").write_text("".join(sums), newline="\n")
    for path in made:
        print(path)


if __name__ == "__main__":
    main()
