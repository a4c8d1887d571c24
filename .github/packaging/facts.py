"""Facts about what is packed: the crate, read with cargo, and the binary, read from its own headers."""

import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# libraries that every Linux of a manylinux tag has
MANYLINUX = re.compile(r"(ld-linux[-\w]*|libc|libm|libdl|librt|libpthread|libgcc_s)\.so\.\d+")


def fail(why, hint=None):
    sys.exit(f"error: {why}" + (f"\nhint: {hint}" if hint else ""))


def run(*command, **options):
    """Runs a program in the C locale and gives its standard output."""
    env = {**os.environ, "LC_ALL": "C", **options.pop("env", {})}
    try:
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, env=env, **options).stdout
    except FileNotFoundError:
        fail(f"`{command[0]}` is not here", "install it (readelf and strip: binutils; dpkg-*: dpkg-dev; cargo: Rust)")
    except subprocess.CalledProcessError as error:
        fail(f"`{' '.join(map(str, command))}` ended with {error.returncode}")


def metadata(target, features):
    """The crates that a build for the target has, from what cargo has downloaded already."""
    command = ["cargo", "metadata", "--offline", "--locked", "--format-version=1", f"--filter-platform={target}"]
    return json.loads(run(*command, f"--features={features}", cwd=ROOT))


def crate(meta):
    return next(package for package in meta["packages"] if package["id"] == meta["resolve"]["root"])


def source_date():
    """SOURCE_DATE_EPOCH, else the time of the last commit: a second build of the same source gives the same bytes."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is None:
        given = run("git", "log", "-1", "--format=%ct", cwd=ROOT).decode()
    # a zip file knows no earlier time than 1980
    if not given.strip().isdigit() or int(given) < 315_532_800:
        fail(f"SOURCE_DATE_EPOCH is {given.strip()!r}", "give whole seconds, from 315532800 (1980) on")
    return int(given)


def target(binary):
    """The target triple that the binary was built for."""
    head = binary.read_bytes()[:4096].ljust(64, b"\0")
    if head[:5] == b"\x7fELF\x02":
        machine = {62: "x86_64", 183: "aarch64"}.get(struct.unpack_from("<H", head, 18)[0])
        if machine and b"/ld-linux" in head:
            return f"{machine}-unknown-linux-gnu"
    elif head[:8] == b"\xcf\xfa\xed\xfe\x0c\x00\x00\x01":
        return "aarch64-apple-darwin"
    elif head[:2] == b"MZ":
        at = struct.unpack_from("<I", head, 0x3C)[0]
        if head[at : at + 6] == b"PE\0\0\x64\x86":
            return "x86_64-pc-windows-msvc"
    fail(
        f"{binary} is no program that is packed here",
        "Linux with glibc (x86_64, aarch64), macOS (arm64) and Windows (x86_64) are",
    )


def platform_tag(binary):
    """The platform of a wheel: the oldest system whose libraries have what the binary asks for."""
    triple = target(binary)
    machine = triple.split("-")[0]
    if "linux" in triple:
        return f"manylinux_2_{glibc(binary)}_{machine}"
    if "darwin" in triple:
        return f"macosx_{macos(binary)}_arm64"
    return "win_amd64"


def glibc(binary):
    """The minor number of the newest version of glibc that a symbol of the binary asks for."""
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", binary).decode())
    foreign = [library for library in needed if not MANYLINUX.fullmatch(library)]
    if foreign:
        fail(f"the binary needs {', '.join(foreign)}, which not every Linux has", "build it without that library")
    versions = re.findall(r"Name: GLIBC_2\.(\d+)", run("readelf", "-VW", binary).decode())
    if not versions:
        fail("the binary asks for no version of glibc", "it was not linked as a program for Linux with glibc is")
    return max(map(int, versions))


def macos(binary):
    """The oldest macOS that the binary's load commands name, as a wheel's tag has it: from 11 on the minor number is 0."""
    data = binary.read_bytes()
    at, build_version = 32, 0x32
    for _ in range(struct.unpack_from("<I", data, 16)[0]):
        command, size = struct.unpack_from("<II", data, at)
        if command == build_version:
            version = struct.unpack_from("<I", data, at + 12)[0]
            major = version >> 16
            return f"{major}_{0 if major >= 11 else version >> 8 & 255}"
        at += size
    fail("the binary does not say which macOS it needs", "link it with a current Xcode")
