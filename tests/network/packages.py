"""Makes one small package for each package manager, and the registries to get them from.

    packages.py FOLDER    fills FOLDER/www and FOLDER/git

pip: https://pypi.example.org/simple/ with the file at files.example.org; npm: https://registry.example.org/; cargo:
sparse+https://index.example.org/ with the file at crates.example.org; git: https://code.example.org/git/lab.git.
"""
import base64
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile

FOLDER = sys.argv[1]


def put(path, data):
    path = f"{FOLDER}/www/{path}"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def tarball(files):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text.encode()), 0o644
            archive.addfile(entry, io.BytesIO(text.encode()))
    return made.getvalue()


def pip():
    made = io.BytesIO()
    files = {
        "labpack/__init__.py": "SAYS = 'hello from pip'\n",
        "labpack-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: labpack\nVersion: 1.0\n",
        "labpack-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: lab\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "labpack-1.0.dist-info/RECORD": "",
    }
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    wheel, name = made.getvalue(), "labpack-1.0-py3-none-any.whl"
    put(f"files.example.org/{name}", wheel)
    sum = hashlib.sha256(wheel).hexdigest()
    link = f"https://files.example.org/{name}#sha256={sum}"
    put("pypi.example.org/simple/labpack/index.html", f"<!DOCTYPE html><html><body><a href='{link}'>{name}</a></body></html>\n")


def npm():
    package = {"name": "labpack", "version": "1.0.0", "main": "index.js"}
    tar = tarball({"package/package.json": json.dumps(package), "package/index.js": "module.exports = 'hello from npm'\n"})
    put("registry.example.org/-/labpack-1.0.0.tgz", tar)
    dist = {
        "tarball": "https://registry.example.org/-/labpack-1.0.0.tgz",
        "integrity": "sha512-" + base64.b64encode(hashlib.sha512(tar).digest()).decode(),
        "shasum": hashlib.sha1(tar).hexdigest(),
    }
    versions = {"1.0.0": {**package, "dist": dist}}
    put("registry.example.org/labpack", json.dumps({"name": "labpack", "dist-tags": {"latest": "1.0.0"}, "versions": versions}))


def cargo():
    manifest = '[package]\nname = "labpack"\nversion = "1.0.0"\nedition = "2021"\n'
    source = "pub const SAYS: &str = \"hello from cargo\";\n"
    crate = tarball({"labpack-1.0.0/Cargo.toml": manifest, "labpack-1.0.0/src/lib.rs": source})
    put("crates.example.org/labpack/1.0.0/download", crate)
    dl = "https://crates.example.org/{crate}/{version}/download"
    put("index.example.org/config.json", json.dumps({"dl": dl}))
    entry = {"name": "labpack", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False}
    put("index.example.org/la/bp/labpack", json.dumps({**entry, "cksum": hashlib.sha256(crate).hexdigest()}) + "\n")


def git():
    repository = f"{FOLDER}/git/lab.git"
    who = ["-c", "user.name=A Person", "-c", "user.email=person@example.org"]

    def run(*args):
        subprocess.run(["git", *who, *args], check=True, stdout=subprocess.DEVNULL)

    run("init", "-q", "--bare", "-b", "main", repository)
    run("-C", repository, "config", "http.receivepack", "true")
    work = f"{FOLDER}/work"
    run("init", "-q", "-b", "main", work)
    with open(f"{work}/README", "w") as file:
        file.write("hello from git\n")
    run("-C", work, "add", "README")
    run("-C", work, "commit", "-q", "-m", "First")
    run("-C", work, "push", "-q", repository, "main")


pip()
npm()
cargo()
git()
