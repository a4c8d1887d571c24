"""THIRD-PARTY.txt: the licences and notices of everything that is linked into the binary, in an order that does not change."""

import html
import re
from collections import defaultdict
from pathlib import Path

from facts import ROOT, crate, fail, run

NOTICE = re.compile(r"(un)?licen[cs]e|copying|notice|copyright", re.IGNORECASE)
# of code that is not linked
ELSEWHERE = {"tests", "test", "benches", "examples", "fuzz", "target", "docs"}
CODE = {".rs", ".py", ".c", ".h", ".js", ".json", ".toml", ".html", ".sh", ".yml", ".snap"}

MIT = """Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation
files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy,
modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software
is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES
OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE
LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR
IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
"""


def text(meta):
    """The whole file."""
    packages = linked(meta)
    shared = defaultdict(list)
    for package in packages:
        for origin, words in notices(package):
            shared[" ".join(words.split())].append((f"{package['name']} {package['version']}: {origin}", words))
    parts = [
        "The program caro is licensed under Apache-2.0 (LICENSE). Linked into it are the crates below and Rust's standard library,\n"
        "each under the licence beside its name; the texts of those licences follow. Where a licence asks for the source, it is\n"
        "the crate of that name and version, unchanged.\n"
    ]
    parts += [f"{p['name']} {p['version']}: {p['license']}" + (f", {p['repository']}" if p["repository"] else "") for p in packages]
    for same in sorted(shared.values()):
        parts += ["", "-" * 80, *(origin for origin, _ in same), "-" * 80, "", same[0][1].strip()]
    parts += ["", "-" * 80, "Rust's standard library", "-" * 80, "", standard_library()]
    return "\n".join(line.rstrip() for line in "\n".join(parts).splitlines()) + "\n"


def linked(meta):
    """The packages that are linked in: all that is reached without tests and build scripts, but our own."""
    nodes = {node["id"]: node for node in meta["resolve"]["nodes"]}
    reached, ahead = set(), [crate(meta)["id"]]
    while ahead:
        one = ahead.pop()
        if one not in reached:
            reached.add(one)
            kinds = ((dep["pkg"], kind["kind"]) for dep in nodes[one]["deps"] for kind in dep["dep_kinds"])
            ahead += [package for package, kind in kinds if kind is None]
    packages = [package for package in meta["packages"] if package["id"] in reached - set(meta["workspace_members"])]
    return sorted(packages, key=lambda package: (package["name"], package["version"]))


def notices(package):
    """The files of a package that are licences or notices, by name; without any, the text that its licence's name stands for."""
    folder = Path(package["manifest_path"]).parent
    named = package["license_file"]
    found = []
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        is_notice = NOTICE.match(path.name) and path.suffix not in CODE or str(inside) == named
        if is_notice and path.is_file() and not ELSEWHERE & set(inside.parts):
            found.append((str(inside), path.read_text(encoding="utf-8", errors="replace")))
    if not package["license"]:
        fail(f"{package['name']} names no licence", "ask its authors before it is shipped")
    if found:
        return found
    choices = re.split(r"\s+OR\s+|/", package["license"])
    if "Apache-2.0" in choices:
        return [("no file; taken under Apache-2.0", (ROOT / "LICENSE").read_text())]
    if "MIT" in choices:
        authors = ", ".join(package["authors"]) or f"the authors of {package['name']}"
        return [("no file; taken under MIT", f"Copyright (c) {authors}\n\n{MIT}")]
    fail(f"{package['name']} comes without the text of {package['license']}", "teach notices.py that text")


def standard_library():
    """The notices that come with the compiler, as text."""
    page = Path(run("rustc", "--print", "sysroot", cwd=ROOT).decode().strip(), "share/doc/rust/COPYRIGHT-library.html")
    if not page.is_file():
        fail(f"{page} is not there", "use the toolchain of rustup, which has it")
    body = re.sub(r"(?s)<(style|title)\b.*?</\1>", "", page.read_text(encoding="utf-8"))
    body = html.unescape(re.sub(r"<[^>]*>", "", body))
    return re.sub(r"(\s*\n){3,}", "\n\n", body).strip()
