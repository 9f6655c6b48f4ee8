# SPDX-License-Identifier: Apache-2.0
"""Checks what a wheel and a source distribution contain and say of themselves: check_distribution.py WHEEL SDIST."""

import sys
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

PACKAGE = Path(__file__).parent.parent
WHEEL, SDIST = Path(sys.argv[1]), Path(sys.argv[2])


def check(condition: bool, reason: str) -> None:
    if not condition:
        raise SystemExit(reason)


def check_metadata(file: str, text: str) -> Message:
    metadata = Parser().parsestr(text)
    expected = {
        "Name": "taran",
        "License-Expression": "Apache-2.0",
        "License-File": "LICENSE",
        "Requires-Python": ">=3.11",
    }
    for name, value in expected.items():
        check(metadata[name] == value, f"{file}: {name} is {metadata[name]!r}, not {value!r}")
    urls = metadata.get_all("Project-URL", [])
    check(any(url.startswith("Source, https://") for url in urls), f"{file}: no address of the source: {urls}")
    check("import taran" in str(metadata.get_payload()), f"{file}: the description is not the README")
    return metadata


def check_wheel() -> None:
    # One wheel for all versions of Python, which runs on the distributions with this glibc or a newer one.
    _, version, python, abi, platform = WHEEL.stem.split("-")
    check((python, abi) == ("cp311", "abi3"), f"{WHEEL.name} is not for all versions from 3.11")
    check(platform.startswith("manylinux_2_"), f"{WHEEL.name} is for this machine only: maturin found no manylinux policy")
    with zipfile.ZipFile(WHEEL) as wheel:
        names = wheel.namelist()
        information = f"taran-{version}.dist-info"
        metadata = check_metadata(WHEEL.name, wheel.read(f"{information}/METADATA").decode())
        licence = f"{information}/licenses/LICENSE"
        check(licence in names, f"{WHEEL.name} has no {licence}")
        check(wheel.read(licence) == (PACKAGE / "LICENSE").read_bytes(), f"{licence} is not ours")
    check(metadata["Version"] == version, f"{WHEEL.name}: version {metadata['Version']}")
    for name in ("taran/__init__.py", "taran/_taran.pyi", "taran/py.typed", "taran/_taran.abi3.so"):
        check(name in names, f"{WHEEL.name} has no {name}")


def check_sdist() -> None:
    root = SDIST.name.removesuffix(".tar.gz")
    with tarfile.open(SDIST) as sdist:
        names = sdist.getnames()
        file = sdist.extractfile(f"{root}/PKG-INFO")
        assert file is not None
        check_metadata(SDIST.name, file.read().decode())
    for name in ("LICENSE", "pyproject.toml", "bindings/python/Cargo.lock", "crates/driver/Cargo.toml", "python/taran/py.typed"):
        check(f"{root}/{name}" in names, f"{SDIST.name} has no {name}")


check_wheel()
check_sdist()
