"""The archive of a release: the tree below one folder, as tar.gz, and as zip for Windows."""

import gzip
import io
import tarfile
import time
import zipfile

import tree


def make(root, name, target, date, out):
    """Writes the archive and gives its path."""
    return zipped(root, name, date, out) if "windows" in target else tarred(root, name, date, out)


def tarred(root, name, date, out):
    path = out / f"{name}.tar.gz"
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for inside, file in tree.files(root):
                data = file.read_bytes()
                entry = tarfile.TarInfo(f"{name}/{inside}")
                entry.size, entry.mode, entry.mtime = len(data), tree.mode(inside), date
                archive.addfile(entry, io.BytesIO(data))
    return path


def zipped(root, name, date, out):
    path = out / f"{name}.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for inside, file in tree.files(root):
            archive.writestr(entry(f"{name}/{inside}", date, tree.mode(inside)), file.read_bytes(), compresslevel=9)
    return path


def entry(name, date, mode):
    """An entry of a zip file that tells nothing of the machine that it was made on."""
    info = zipfile.ZipInfo(name, time.gmtime(date)[:6])
    info.create_system, info.external_attr = 3, (0o100000 | mode) << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    return info
