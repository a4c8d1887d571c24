"""The tree that every form is made of, as it lies below a prefix: bin, share, and lib/caro for the installer."""

import os
import re
import shutil
import tempfile
from pathlib import Path

import facts
import notices

COMPLETIONS = {
    "bash": "share/bash-completion/completions/caro",
    "zsh": "share/zsh/site-functions/_caro",
    "fish": "share/fish/vendor_completions.d/caro.fish",
    "elvish": "share/doc/caro/completions/caro.elv",
    "powershell": "share/doc/caro/completions/caro.ps1",
}
LICENCES = ("LICENSE", "THIRD-PARTY.txt")


def make(binary, root, meta):
    """Lays the tree below `root`: what the binary itself prints, and the papers."""
    suffix = ".exe" if "windows" in facts.target(binary) else ""
    program = root / f"bin/caro{suffix}"
    program.parent.mkdir(parents=True)
    shutil.copyfile(binary, program)
    program.chmod(0o755)
    if "linux" in facts.target(binary):
        facts.run("strip", "--remove-section=.comment", "--remove-section=.note", program)
    values = says(program, "completions", "--help").decode().split("Options:")[0]
    own = set(re.findall(r"^ +- (\w+):", values, re.MULTILINE)) - {"man"}
    if own != set(COMPLETIONS):
        facts.fail(f"the program completes for {sorted(own)}", "tree.py has to know where each of these scripts goes")
    for shell, place in COMPLETIONS.items():
        write(root / place, says(program, "completions", shell))
    pages = root / "share/man/man1"
    pages.mkdir(parents=True)
    says(program, "--quiet", "completions", "man", pages)
    if not (pages / "caro.1").is_file():
        facts.fail("the program has written no manual page")
    papers = root / "share/doc/caro"
    for name in ("LICENSE", "README.md"):
        write(papers / name, (facts.ROOT / name).read_bytes())
    write(papers / "THIRD-PARTY.txt", notices.text(meta).encode())
    write(root / "lib/caro/install.sh", Path(__file__).with_name("install.sh").read_bytes())


def says(program, *words):
    """What the program prints in an empty home."""
    with tempfile.TemporaryDirectory() as home:
        env = {"HOME": home, "PATH": os.defpath, "CARO_RESIDENT": "off"}
        return facts.run(program, *words, env=env)


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def files(root):
    """Every file below `root` with its name there, in an order that is the same everywhere."""
    found = [(path.relative_to(root).as_posix(), path) for path in root.rglob("*") if path.is_file()]
    return sorted(found)


def mode(name):
    return 0o755 if name.startswith("bin/") or name.endswith(".sh") else 0o644
