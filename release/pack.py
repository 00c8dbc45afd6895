"""Packs files reproducibly: the result depends only on the files' contents.

usage: pack.py tar FOLDER FILE.tar.gz
       pack.py wheel PROGRAM OS ARCHITECTURE VERSION FOLDER
"""

import base64
import gzip
import hashlib
import io
import os
import sys
import tarfile
import zipfile

# The platform tags of wheels. A static program runs with both C libraries of Linux.
TAGS = {
    ("linux", "amd64"): "manylinux2014_x86_64.musllinux_1_1_x86_64",
    ("linux", "arm64"): "manylinux2014_aarch64.musllinux_1_1_aarch64",
    ("darwin", "amd64"): "macosx_11_0_x86_64",
    ("darwin", "arm64"): "macosx_11_0_arm64",
    ("windows", "amd64"): "win_amd64",
}


def pack_tar(folder, path):
    """Writes the files below a folder, sorted by name, without times and owners."""
    with open(path, "wb") as file, gzip.GzipFile("", "wb", mtime=0, fileobj=file) as compressed:
        with tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for directory, directories, names in sorted(os.walk(folder)):
                directories.sort()
                for name in sorted(names):
                    source = os.path.join(directory, name)
                    entry = tarfile.TarInfo(os.path.relpath(source, folder))
                    entry.mode = 0o755 if os.access(source, os.X_OK) else 0o644
                    entry.size = os.path.getsize(source)
                    with open(source, "rb") as content:
                        archive.addfile(entry, content)


def pack_wheel(program, system, architecture, version, folder):
    """Writes a wheel with the program as a script.

    Source: the wheel format of PEP 427 and the core metadata 2.4.
    """
    tag = f"py3-none-{TAGS[system, architecture]}"
    info = f"kubectl_vap-{version}.dist-info"
    readme = "`kubectl vap` checks and tests Kubernetes admission policies. This package contains the program.\n"
    metadata = (
        f"Metadata-Version: 2.4\nName: kubectl-vap\nVersion: {version}\n"
        "Summary: Check, test and watch ValidatingAdmissionPolicies\n"
        f"Project-URL: Source, {home('repository')}\nProject-URL: Documentation, {home('docs')}\n"
        "License-Expression: Apache-2.0\nLicense-File: LICENSE\nRequires-Python: >=3.8\n"
        f"Description-Content-Type: text/markdown\n\n{readme}"
    )
    tags = "".join(f"Tag: py3-none-{part}\n" for part in TAGS[system, architecture].split("."))
    wheel = f"Wheel-Version: 1.0\nGenerator: vap-status-controller\nRoot-Is-Purelib: false\n{tags}"
    with open(program, "rb") as file:
        content = file.read()
    with open("LICENSE", "rb") as file:
        license_text = file.read()
    script = f"kubectl_vap-{version}.data/scripts/{os.path.basename(program)}"
    entries = [
        (script, content, 0o755),
        (f"{info}/METADATA", metadata.encode(), 0o644),
        (f"{info}/WHEEL", wheel.encode(), 0o644),
        (f"{info}/licenses/LICENSE", license_text, 0o644),
    ]
    record = io.StringIO()
    for name, data, _ in entries:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.write(f"{name},sha256={digest},{len(data)}\n")
    record.write(f"{info}/RECORD,,\n")
    entries.append((f"{info}/RECORD", record.getvalue().encode(), 0o644))
    with zipfile.ZipFile(os.path.join(folder, f"kubectl_vap-{version}-{tag}.whl"), "w") as archive:
        for name, data, mode in entries:
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100000 | mode) << 16
            entry.create_system = 3
            archive.writestr(entry, data)


def home(key):
    """Returns a value of release/home."""
    with open("release/home", encoding="utf-8") as file:
        values = dict(line.rstrip("\n").split("=", 1) for line in file if not line.startswith("#"))
    return values[key]


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    {"tar": pack_tar, "wheel": pack_wheel}[command](*arguments)
