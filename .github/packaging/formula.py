#!/usr/bin/env python3
"""Writes caro.rb, a formula for Homebrew, for the archives in a folder: formula.py FOLDER HOMEPAGE DOWNLOADS

DOWNLOADS is the address below which the archives lie (a file:// address too); the formula names their sums.
"""

import hashlib
import sys
from pathlib import Path

import facts

FORMULA = """class Caro < Formula
  desc "%(description)s"
  homepage "%(homepage)s"
  version "%(version)s"
  license "%(license)s"
%(systems)s
  def install
    bin.install "bin/caro"
    man1.install Dir["share/man/man1/*"]
    bash_completion.install "share/bash-completion/completions/caro"
    zsh_completion.install "share/zsh/site-functions/_caro"
    fish_completion.install "share/fish/vendor_completions.d/caro.fish"
    doc.install Dir["share/doc/caro/*"]
  end

  test do
    assert_equal "caro #{version}", shell_output("#{bin}/caro --version").strip
    assert_match "danger", shell_output("#{bin}/caro check 'rm -rf /' 2>&1", 1)
  end
end
"""
SYSTEMS = {
    "on_macos": {"on_arm": "aarch64-apple-darwin"},
    "on_linux": {"on_arm": "aarch64-unknown-linux-gnu", "on_intel": "x86_64-unknown-linux-gnu"},
}


def main(folder, homepage, downloads):
    for address in (homepage, downloads):
        if not address.startswith(("https://", "file:///")) or set(address) & set("\"\\#\n "):
            facts.fail(f"{address!r} is no address for a formula", "give one that begins with https:// or file:///")
    package = facts.crate(facts.metadata("x86_64-unknown-linux-gnu", "dist"))
    systems = ""
    for system, machines in SYSTEMS.items():
        blocks = ""
        for machine, target in machines.items():
            archive = Path(folder, f"caro-{package['version']}-{target}.tar.gz")
            if archive.is_file():
                digest = hashlib.sha256(archive.read_bytes()).hexdigest()
                url = f"{downloads.rstrip('/')}/{archive.name}"
                blocks += f'    {machine} do\n      url "{url}"\n      sha256 "{digest}"\n    end\n'
        if blocks:
            systems += f"\n  {system} do\n{blocks}  end\n"
    if not systems:
        facts.fail(f"{folder} has no archive of caro {package['version']}", "build one: pack.py BINARY FOLDER")
    # Homebrew's own limit, and its wish for a capital at the beginning
    words = package["description"].split(":")[0]
    text = FORMULA % {**package, "description": words, "homepage": homepage, "systems": systems}
    Path(folder, "caro.rb").write_text(text)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__.splitlines()[0])
    main(*sys.argv[1:])
