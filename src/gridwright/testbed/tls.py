"""What a cluster that speaks TLS asks for."""

from __future__ import annotations

from ..model.record import Record

__all__ = ["Tls"]


class Tls(Record):
    """Files for a cluster that speaks TLS: what it may be trusted by, and who we are."""

    ca_file: str
    cert: str
    key: str

    def security(self) -> dict[str, str]:
        """Return it in Dask's words."""
        return {
            "tls_ca_file": self.ca_file,
            "tls_client_cert": self.cert,
            "tls_client_key": self.key,
        }
