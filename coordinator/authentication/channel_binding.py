"""tls-server-end-point: the hash of a server's certificate (RFC 5929, section 4.1).

The hash is the one that the certificate is signed with; MD5 and SHA-1 become SHA-256. Python's
`ssl` has no such channel binding.
"""

import hashlib


def server_end_point(certificate: bytes) -> bytes | None:
    """The hash of a certificate in DER. None if its signature has no hash of its own (Ed25519):
    then there is no channel binding, and -PLUS is not offered.
    """
    from cryptography import x509

    algorithm = x509.load_der_x509_certificate(certificate).signature_hash_algorithm
    if algorithm is None:
        return None
    name = "sha256" if algorithm.name in ("md5", "sha1") else algorithm.name
    return hashlib.new(name.replace("sha3-", "sha3_"), certificate).digest()
