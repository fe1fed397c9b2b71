"""The hash of a certificate, by the hash of its signature."""

import base64
import hashlib

import pytest

from coordinator.authentication.channel_binding import server_end_point
from tests.unit.authentication.certificates import HASHES, self_signed


@pytest.mark.parametrize("algorithm", HASHES)
def test_the_hash_is_that_of_the_signature(algorithm: str) -> None:
    made = self_signed(algorithm, "rsa" if algorithm != "sha3-256" else "ec")
    name = algorithm.replace("-", "_")
    assert made.hash == hashlib.new(name, made.der).digest()


def test_a_signature_without_a_hash_has_no_binding() -> None:
    assert server_end_point(self_signed("", "ed25519").der) is None


_OLD = {
    "sha1": (
        "MIIBbDCCARSgAwIBAgIUOAimmnt9SN7gPnvcXUVQRTZKiPowCQYHKoZIzj0EATAMMQowCAYDVQQDDAF4MCAX"
        "DTI2MTEyODIyMjg0NloYDzIxMjYxMTA0MjIyODQ2WjAMMQowCAYDVQQDDAF4MFkwEwYHKoZIzj0CAQYIKoZI"
        "zj0DAQcDQgAE0ScVFFzv8mGCi8CN+nsuG28R8JIRI6qZoce3nCMj/BgRlqfPCcmIVFUGMJFd2IZJabEYm7Tm"
        "JQ3OsXkulxVZPKNTMFEwHQYDVR0OBBYEFJvbbr+gJTAd+O0i/WYqX5POgjfzMB8GA1UdIwQYMBaAFJvbbr+g"
        "JTAd+O0i/WYqX5POgjfzMA8GA1UdEwEB/wQFMAMBAf8wCQYHKoZIzj0EAQNHADBEAiAKD0NG5ryryFM31zrC"
        "H2+KLoSO1M+wvYDYi5NXTPLClgIgBmBpAdFbpoq9iICw7+3Is3SLs8qhrOPQwq2OImiV/Wc="
    ),
    "md5": (
        "MIIB9jCCAV+gAwIBAgIUWzp8eGJumOnNoczhEsdaUkPbuWgwDQYJKoZIhvcNAQEEBQAwDDEKMAgGA1UEAwwB"
        "eDAgFw0yNjExMjgyMjI4NDZaGA8yMTI2MTEwNDIyMjg0NlowDDEKMAgGA1UEAwwBeDCBnzANBgkqhkiG9w0B"
        "AQEFAAOBjQAwgYkCgYEArUMdMYDv8ooWxfAm41Eh+faLY5q3o5BeO39pZPhvDGS1Dt4DsJgKoNirOyAIsARM"
        "WZGQl1zZiQYLSedDQYkm9aCpGsk6vt7GmNPWs01Yorp1iztZ46Rv7pAHpWGWXi3J3CgzVhH9xuf34pvWcpHH"
        "R77jwPwAJUCbB6VuIVcaq4kCAwEAAaNTMFEwHQYDVR0OBBYEFNhxIR1ou9WV7nlUxdKcxDVHObg+MB8GA1Ud"
        "IwQYMBaAFNhxIR1ou9WV7nlUxdKcxDVHObg+MA8GA1UdEwEB/wQFMAMBAf8wDQYJKoZIhvcNAQEEBQADgYEA"
        "VqdR1R2EHEokEs9o2rrTyI4fTae1lGAB6yCqRQ1z5+cwMLyAu00fMyqB5YqrpVF8vzWKa6NBD6pv3zzEJRwt"
        "ZfSL+870nK6XqKAaT3kAwLMNFI1tO/WBqr3NyQQMBYVRMNn4NyOeTUAPD9ElC1IBSzO2bruirIgyBuA5p6vX"
        "WAQ="
    ),
}
"""Certificates that nobody makes any longer."""


@pytest.mark.parametrize("algorithm", _OLD)
def test_hashes_that_are_broken_become_sha256(algorithm: str) -> None:
    der = base64.b64decode(_OLD[algorithm])
    assert server_end_point(der) == hashlib.sha256(der).digest()
