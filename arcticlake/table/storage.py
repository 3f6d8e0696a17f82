"""Where files lie: one small value that opens the same store on the driver and on executors.

It carries the catalog's own `s3.*`, `gcs.*` and `adls.*` properties and makes PyArrow's file
system from them. It pickles, and needs no pyiceberg, whose import would cost every worker a
second. A location without a scheme is a local path.

Touches the file systems that PyArrow opens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from pyarrow import fs

from arcticlake.errors import InvalidRequest

_S3_SCHEMES = frozenset({"s3", "s3a", "s3n", "oss"})
_KEPT_PREFIXES = ("s3.", "gcs.", "adls.", "hdfs.", "client.")


@dataclass(frozen=True, slots=True)
class Storage:
    """The store of one catalog."""

    properties: tuple[tuple[str, str], ...] = ()

    def open(self, location: str) -> tuple[fs.FileSystem, str]:
        """Return the file system of a location, and the location's path in it."""
        scheme = scheme_of(location)
        if scheme == "file":
            return _file_system("file", "", ()), local_path(location)
        parts = urlsplit(location, allow_fragments=False)
        path = parts.path if scheme == "hdfs" else parts.netloc + parts.path
        return _file_system(scheme, parts.netloc, self.properties), path


def storage_of(properties: Mapping[str, str]) -> Storage:
    """Return the store that a catalog's properties describe."""
    kept = {k: v for k, v in properties.items() if k.startswith(_KEPT_PREFIXES)}
    return Storage(tuple(sorted(kept.items())))


def scheme_of(location: str) -> str:
    """Return the scheme of a location; a plain path is a file."""
    head, separator, _ = location.partition("://")
    if separator:
        return head.lower()
    return "file"


def local_path(location: str) -> str:
    """Return the plain path of a local location, with or without its scheme."""
    return location.removeprefix("file://")


@lru_cache(maxsize=64)
def _file_system(
    scheme: str, authority: str, properties: tuple[tuple[str, str], ...]
) -> fs.FileSystem:
    known = dict(properties)
    if scheme == "file":
        return fs.LocalFileSystem()
    if scheme in _S3_SCHEMES:
        return _s3(known)
    if scheme in {"gs", "gcs"}:
        return fs.GcsFileSystem(access_token=known.get("gcs.oauth2.token"))
    if scheme in {"abfs", "abfss", "wasb", "wasbs"}:
        return fs.AzureFileSystem(
            account_name=known.get("adls.account-name", authority.partition("@")[2].split(".")[0]),
            account_key=known.get("adls.account-key"),
            sas_token=known.get("adls.sas-token"),
        )
    if scheme == "hdfs":
        host, _, port = authority.partition(":")
        return fs.HadoopFileSystem(host or "default", int(port or 0), user=known.get("hdfs.user"))
    message = f"storage scheme {scheme}:// is not supported; use a folder, s3, gs, abfs or hdfs"
    raise InvalidRequest(message)


def _s3(known: Mapping[str, str]) -> fs.FileSystem:
    def first(*names: str) -> str | None:
        return next((known[name] for name in names if known.get(name)), None)

    options: dict[str, object] = {
        "endpoint_override": first("s3.endpoint"),
        "access_key": first("s3.access-key-id", "client.access-key-id"),
        "secret_key": first("s3.secret-access-key", "client.secret-access-key"),
        "session_token": first("s3.session-token", "client.session-token"),
        "region": first("s3.region", "client.region"),
    }
    virtual = first("s3.force-virtual-addressing")
    if virtual is not None:
        options["force_virtual_addressing"] = virtual.lower() == "true"
    return fs.S3FileSystem(**{name: value for name, value in options.items() if value is not None})
