"""Make .venv: the locked environment, from nothing but Python 3.11+ and Java 17+.

In:  requirements.txt (pins with hashes), pyproject.toml; the user's own pip settings (mirror, proxy, CA).
Out: .venv with everything and with tidegate itself, editable. When the inputs haven't changed since the
     last time: nothing, in milliseconds and offline.

Runs under the system's Python, perhaps an old one, so that it can say what is missing: standard library
only, and no syntax newer than 3.7.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import patience

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
STAMP = VENV / ".tidegate-environment"
PYTHON_MIN = (3, 11)
JAVA_MIN = 17

# pip's setting -> uv's variable: uv reads neither pip.conf nor PIP_*, and people's mirrors stand there.
UV_FROM_PIP = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
    "no-index": "UV_NO_INDEX",
}


def main() -> None:
    check_python()
    check_java()
    wanted = fingerprint()
    if STAMP.exists() and STAMP.read_text() == wanted:
        return
    make_venv()
    bootstrap_uv()
    environment = uv_environment()
    say("installing what requirements.txt pins: 1.5 GB, for some minutes")
    # Compiled here, as pip does: where PYTHONDONTWRITEBYTECODE is set, every start would do it again, for seconds.
    run(
        [bin_path("uv"), "pip", "sync", "--quiet", "--compile-bytecode", "--require-hashes", "requirements.txt"],
        environment,
    )
    run(
        [bin_path("uv"), "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--editable", "."],
        environment,
    )
    STAMP.write_text(wanted)


def check_python() -> None:
    if sys.version_info < PYTHON_MIN:
        found = ".".join(map(str, sys.version_info[:3]))
        stop(
            f"Python 3.11 or newer is needed, {sys.executable} is {found}",
            install("python3.11 python3.11-venv", "python3.11", "python@3.12") + "; then: make PYTHON=python3.11",
        )


def check_java() -> None:
    remedy = install("openjdk-17-jre-headless", "java-17-openjdk-headless", "openjdk@17") + " (any from 17 on will do)"
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    if shutil.which(java) is None:
        stop("Java 17 or newer is needed, there is none", remedy)
    told = subprocess.run([java, "-version"], capture_output=True, check=False)
    found = re.search(r'version "(?:1\.)?(\d+)', told.stderr.decode(errors="replace"))
    if found is None or int(found.group(1)) < JAVA_MIN:
        stop(
            "Java 17 or newer is needed, {} is {}".format(java, found.group(1) if found else "of no known version"),
            remedy,
        )


def fingerprint() -> str:
    """Of everything that the environment is made from, the place included: an editable install holds paths."""
    digest = hashlib.sha256()
    for name in ("requirements.txt", "pyproject.toml", "tools/environment.py"):
        digest.update((ROOT / name).read_bytes())
    digest.update(repr((sys.version_info[:3], str(ROOT))).encode())
    return digest.hexdigest()


def make_venv() -> None:
    if (VENV / "bin" / "python").exists():
        version = subprocess.run(
            [bin_path("python"), "-c", "import sys; print(sys.version_info[:2] >= (3, 11))"],
            stdout=subprocess.PIPE,
            check=False,
        )
        if version.stdout.strip() == b"True":
            return
    say("making .venv with " + sys.executable)
    try:
        import ensurepip
        import venv  # noqa: F401  (Debian packs both apart from Python)
    except ImportError:
        number = "{}.{}".format(*sys.version_info)
        stop("this Python has no venv module", install(f"python{number}-venv", "python3", "python"))
    del ensurepip
    run([sys.executable, "-m", "venv", "--clear", str(VENV)], dict(os.environ))


def bootstrap_uv() -> None:
    """Install the pinned uv by the venv's pip, hashes checked; uv then installs the rest in parallel."""
    text = (ROOT / "requirements.txt").read_text()
    pin = re.search(r"^uv==(?:.*\\\n)*.*", text, re.MULTILINE)
    if pin is None:
        stop("requirements.txt pins no uv", "run make lock")
    with tempfile.TemporaryDirectory() as scratch:
        only_uv = Path(scratch) / "uv.txt"
        only_uv.write_text(pin.group(0) + "\n")
        command = [bin_path("python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        run([*command, "--require-hashes", "--no-deps", "-r", str(only_uv)], dict(os.environ))


def uv_environment() -> dict:
    """Our environment, with pip's settings said in uv's words; a UV_ variable that is set already wins."""
    environment = dict(os.environ, VIRTUAL_ENV=str(VENV))
    listed = subprocess.run([bin_path("python"), "-m", "pip", "config", "list"], stdout=subprocess.PIPE, check=False)
    for line in listed.stdout.decode().splitlines():
        name, _, value = line.partition("=")
        variable = UV_FROM_PIP.get(name.rsplit(".", 1)[-1])
        if variable is not None:
            environment.setdefault(variable, " ".join(str(ast.literal_eval(value)).split()))
    return environment


def bin_path(program: str) -> str:
    return str(VENV / "bin" / program)


def run(command: list, environment: dict) -> None:
    if patience.run(command, cwd=str(ROOT), env=environment, stdin=subprocess.DEVNULL) != 0:
        stop("{} failed".format(" ".join(map(str, command[:4]))), "see above; then run make again")


def install(apt: str, dnf: str, brew: str) -> str:
    for tool, packages in (("apt-get", apt), ("dnf", dnf), ("brew", brew)):
        if shutil.which(tool):
            return f"{tool} install {packages}"
    return f"install it (Debian's packages: {apt})"


def say(text: str) -> None:
    print("tidegate: " + text, flush=True)


def stop(what: str, remedy: str) -> None:
    sys.exit(f"tidegate: {what}; {remedy}")


if __name__ == "__main__":
    main()
