"""The Python wheel: the binary among its scripts, manual pages and completions among its data."""

import base64
import hashlib
import re
import zipfile

import archive
import facts
import tree


def make(root, package, binary, date, out):
    """Writes the wheel and gives its path."""
    name = package["name"].replace("-", "_")
    version = python_version(package["version"])
    tag = f"py3-none-{facts.platform_tag(binary)}"
    info, data = f"{name}-{version}.dist-info", f"{name}-{version}.data"
    files = {}
    for inside, file in tree.files(root):
        folder, rest = inside.split("/", 1)
        if folder == "bin":
            files[f"{data}/scripts/{rest}"] = file.read_bytes()
        elif file.name in tree.LICENCES:
            files[f"{info}/licenses/{file.name}"] = file.read_bytes()
        elif folder == "share":
            files[f"{data}/data/{inside}"] = file.read_bytes()
    licences = "".join(f"License-File: {licence}\n" for licence in tree.LICENCES)
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.4\nName: {package['name']}\nVersion: {version}\nSummary: {package['description']}\n"
        f"Keywords: {','.join(package['keywords'])}\nLicense-Expression: {package['license']}\n{licences}Requires-Python: >=3.8\n"
        f"Description-Content-Type: text/markdown\n\n{package['description']}. `caro --help` says how.\n"
    ).encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: caro packaging\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    path = out / f"{name}-{version}-{tag}.whl"
    record = f"{info}/RECORD"
    with zipfile.ZipFile(path, "w") as wheel:
        lines = []
        for inside, content in sorted(files.items()):
            mode = 0o755 if "/scripts/" in inside else 0o644
            wheel.writestr(archive.entry(inside, date, mode), content, compresslevel=9)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{inside},sha256={digest},{len(content)}\n")
        wheel.writestr(archive.entry(record, date, 0o644), "".join(lines) + f"{record},,\n", compresslevel=9)
    return path


def python_version(version):
    """A version of cargo as Python writes it: 1.2.0-rc.1 is 1.2.0rc1."""
    found = re.fullmatch(r"(\d+\.\d+\.\d+)(?:-(alpha|beta|rc)\.?(\d+))?", version)
    if not found:
        facts.fail(f"Python has no version like {version}", "use 1.2.3, or 1.2.3-alpha.1, -beta.1, -rc.1")
    number, kind, count = found.groups()
    return number + ({"alpha": "a", "beta": "b", "rc": "rc"}[kind] + count if kind else "")
