"""pip as a program: wheelslim itself opens no connection."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from wheelslim.errors import ArtifactError, StorageError, UsageError

_QUIET = ("--disable-pip-version-check", "--no-input", "--quiet", "--no-color")
_SHOWN_LINES = 4
_ONLY_WHEELS = (
    "Only wheels are taken: build one where there is none, and name its directory with --find-links"
)


@dataclass(frozen=True)
class Requirements:
    """What is wanted, and from where; empty where pip's own configuration decides.

    ``files`` are requirements files, ``words`` single requirements. ``platforms`` and
    ``python_version`` are those of another machine.
    """

    files: tuple[Path, ...] = ()
    words: tuple[str, ...] = ()
    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    python_version: str | None = None
    platforms: tuple[str, ...] = ()

    @property
    def wanted(self) -> tuple[str, ...]:
        """Arguments for pip: what to install."""
        return (*(word for file in self.files for word in ("--requirement", str(file))), *self.words)

    @property
    def places(self) -> tuple[str, ...]:
        """Arguments for pip: where to look, and for which machine."""
        words = ["--only-binary", ":all:"]
        if self.index_url is not None:
            words += ["--index-url", self.index_url]
        for url in self.extra_index_urls:
            words += ["--extra-index-url", url]
        for place in self.find_links:
            words += ["--find-links", place]
        if self.python_version is not None:
            words += ["--python-version", self.python_version]
        for platform in self.platforms:
            words += ["--platform", platform]
        return tuple(words)


@dataclass(frozen=True, slots=True)
class Resolved:
    """A wheel that pip chose. ``sha256`` is None where the index does not tell.

    ``is_direct`` says that a requirement named the URL itself.
    """

    name: str
    version: str
    url: str
    sha256: str | None
    is_direct: bool = False

    @property
    def local_path(self) -> Path | None:
        """Where the wheel lies, if it lies on this machine."""
        from urllib.parse import unquote, urlsplit

        parts = urlsplit(self.url)
        return Path(unquote(parts.path)) if parts.scheme == "file" and not parts.netloc else None


@dataclass(frozen=True)
class Pip:
    """The command that runs pip."""

    command: tuple[str, ...]

    @classmethod
    def find(cls) -> Pip:
        """Take the pip of the running Python, else one that uv provides.

        Raises:
            UsageError: there is neither.
        """
        own = (sys.executable, "-m", "pip")
        if subprocess.run([*own, "--version"], capture_output=True, check=False).returncode == 0:
            return cls(own)
        uv = shutil.which("uv")
        if uv is None:
            raise UsageError(
                "neither pip nor uv is here to download wheels", hint="python -m ensurepip installs pip"
            )
        return cls((uv, "tool", "run", "--quiet", "--python", sys.executable, "pip"))

    def resolve(self, requirements: Requirements) -> tuple[Resolved, ...]:
        """Let pip choose the wheels, dependencies included; it downloads them only where it must.

        Raises:
            StorageError: pip failed; its words are in the message.
            ArtifactError: a requirement leads to something else than a wheel.
        """
        with TemporaryDirectory(prefix="wheelslim-") as directory:
            report = Path(directory) / "report.json"
            target = ["--target", str(Path(directory) / "target")] if self._is_foreign(requirements) else []
            options = ["--dry-run", "--ignore-installed", "--report", str(report), *target]
            self._run("install", *options, *requirements.places, *requirements.wanted)
            document = json.loads(report.read_bytes())
        return tuple(_resolved(item) for item in document["install"])

    def download(self, wheel: Resolved, requirements: Requirements, directory: Path) -> Path:
        """Download one wheel into the empty ``directory``, exactly the one that was resolved.

        Raises:
            StorageError: pip failed; its words are in the message.
        """
        line = f"{wheel.name}=={wheel.version}"
        if wheel.is_direct:
            line = f"{wheel.name} @ {wheel.url}"
        if wheel.sha256 is not None:
            line += f" --hash=sha256:{wheel.sha256}"
        listed = directory / "requirements.txt"
        listed.write_text(line + "\n", encoding="utf-8")
        strict = ["--require-hashes"] if wheel.sha256 is not None else []
        options = ["--no-deps", "--dest", str(directory), *strict]
        self._run("download", *options, *requirements.places, "--requirement", str(listed))
        listed.unlink()
        (found,) = directory.iterdir()
        return found

    @staticmethod
    def _is_foreign(requirements: Requirements) -> bool:
        return bool(requirements.platforms or requirements.python_version)

    def _run(self, verb: str, *arguments: str) -> None:
        done = subprocess.run(
            [*self.command, verb, *_QUIET, *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            lines = [line.strip() for line in done.stderr.splitlines() if line.startswith("ERROR:")]
            said = lines or done.stderr.strip().splitlines()[-_SHOWN_LINES:]
            raise StorageError(
                f"pip {verb} failed: {' '.join(said[:_SHOWN_LINES]) or 'without a word'}",
                hint=_ONLY_WHEELS if any("matching distribution" in line for line in said) else None,
            )


def _resolved(item: dict[str, Any]) -> Resolved:
    info, metadata = item["download_info"], item["metadata"]
    url = str(info["url"])
    if "archive_info" not in info or not url.partition("#")[0].endswith(".whl"):
        raise ArtifactError(
            f"{metadata['name']} comes from something else than a wheel",
            found=url,
            hint="Build a wheel of it and name its directory with --find-links",
        )
    archive = info["archive_info"]
    sha256 = (archive.get("hashes") or {}).get("sha256")
    return Resolved(
        name=str(metadata["name"]),
        version=str(metadata["version"]),
        url=url,
        sha256=None if sha256 is None else str(sha256),
        is_direct=bool(item.get("is_direct")),
    )
