# SPDX-License-Identifier: Apache-2.0
"""Second implementation of the derivations and frames of docs/spec/transport-security.md, written from that page alone.

`ts1.py --write FILE` makes the test vectors, and `ts1.py --check FILE` compares the file with what this program computes.
It shares no code and no library with the crate `taran-secure`, which reads the same file.
"""

import argparse
import hashlib
import hmac
import json
import struct
import sys

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

SUITES = {1: (AESGCM, 32), 2: (AESGCM, 16), 3: (ChaCha20Poly1305, 32)}
SEALED, BACK, ANNOUNCE, HELLO, INIT, RESP, COOKIE, PAIR = range(0x5450, 0x5458)


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def mac(key, *parts):
    return hmac.new(key, b"".join(parts), hashlib.sha256).digest()


def expand(prk, info, length):
    """HKDF-Expand for at most one block (RFC 5869)."""
    assert length <= 32
    return mac(prk, info, b"\x01")[:length]


def public(private):
    key = X25519PrivateKey.from_private_bytes(private).public_key()
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw)


def dh(private, peer):
    return X25519PrivateKey.from_private_bytes(private).exchange(X25519PublicKey.from_public_bytes(peer))


def fingerprint(key):
    return sha256(b"taran-ts/1 identity", key)[:16]


def base(length, kind, flags=0):
    return struct.pack("<iBBH", length, 0, flags, kind)


def derive(role, secret, suite, identity, session, stream, epoch, receiver=None):
    prk = mac(b"taran-ts/1 " + role, secret)
    ctx = struct.pack("<H", suite) + identity + struct.pack("<iiI", session, stream, epoch)
    if receiver is not None:
        ctx += struct.pack("<q", receiver)
    return (
        expand(prk, b"key" + ctx, SUITES[suite][1]),
        expand(prk, b"iv" + ctx, 12),
        expand(prk, b"id" + ctx, 8),
    )


def nonce(iv, counter):
    mask = b"\0" * 4 + struct.pack(">Q", counter)
    return bytes(a ^ b for a, b in zip(iv, mask))


def seal(suite, keys, kind, counter, plain):
    key, iv, key_id = keys
    header = base(len(plain) + 40, kind) + key_id + struct.pack("<Q", counter)
    return header + SUITES[suite][0](key).encrypt(nonce(iv, counter), plain, header)


def announce(suite, keys, counter, identity, incarnation, session, stream, epoch, setup):
    key, iv, key_id = keys
    aad = base(192, ANNOUNCE, 0x80) + key_id + struct.pack("<Q", counter) + identity
    aad += struct.pack("<QiiIHH", incarnation, session, stream, epoch, 1, suite) + b"\0" * 72
    assert len(aad) == 136
    return aad + SUITES[suite][0](key).encrypt(nonce(iv, counter), setup, aad)


def hint(flags, identity, incarnation, session, stream):
    head = base(192, ANNOUNCE, flags) + b"\0" * 16 + identity
    return (head + struct.pack("<QiiIHH", incarnation, session, stream, 0, 1, 0)).ljust(192, b"\0")


def hello(key_id, random, session, stream):
    return (base(192, HELLO) + key_id + random + struct.pack("<ii", session, stream)).ljust(192, b"\0")


class Noise:
    """Symmetric state of the Noise Protocol Framework, revision 34, with ChaChaPoly and SHA-256."""

    def __init__(self, name, prologue):
        self.h = name.ljust(32, b"\0") if len(name) <= 32 else sha256(name)
        self.ck = self.h
        self.key = None
        self.mix_hash(prologue)

    def mix_hash(self, data):
        self.h = sha256(self.h, data)

    def hkdf(self, material, count):
        temp = mac(self.ck, material)
        outputs, last = [], b""
        for index in range(count):
            last = mac(temp, last, bytes([index + 1]))
            outputs.append(last)
        return outputs

    def mix_key(self, material):
        self.ck, self.key = self.hkdf(material, 2)
        self.n = 0

    def mix_key_and_hash(self, material):
        self.ck, temp, self.key = self.hkdf(material, 3)
        self.mix_hash(temp)
        self.n = 0

    def encrypt(self, plain):
        assert self.key
        sealed = ChaCha20Poly1305(self.key).encrypt(struct.pack("<IQ", 0, self.n), plain, self.h)
        self.n += 1
        self.mix_hash(sealed)
        return sealed

    def split(self):
        return self.hkdf(b"", 2)


def handshake(i_static, i_ephemeral, r_static, r_ephemeral, psk, head, payload1, payload2):
    """Returns both messages and the keys from initiator to responder and back. Both ends' secrets are known here, so one
    state computes the transcript of both."""
    noise = Noise(b"Noise_IKpsk2_25519_ChaChaPoly_SHA256", b"taran-ts/1" + head)
    noise.mix_hash(public(r_static))
    # -> e, es, s, ss
    e = public(i_ephemeral)
    noise.mix_hash(e)
    noise.mix_key(e)
    noise.mix_key(dh(i_ephemeral, public(r_static)))
    message1 = e + noise.encrypt(public(i_static))
    noise.mix_key(dh(i_static, public(r_static)))
    message1 += noise.encrypt(payload1)
    # <- e, ee, se, psk
    e = public(r_ephemeral)
    noise.mix_hash(e)
    noise.mix_key(e)
    noise.mix_key(dh(r_ephemeral, public(i_ephemeral)))
    noise.mix_key(dh(r_ephemeral, public(i_static)))
    noise.mix_key_and_hash(psk)
    message2 = e + noise.encrypt(payload2)
    return message1, message2, *noise.split()


def mac1(addressee, before):
    return mac(sha256(b"taran-ts/1 mac1", addressee), before)[:16]


def pair(key, link, counter, items):
    header = base(len(items) + 40, PAIR) + struct.pack("<QQ", link, counter)
    return header + ChaCha20Poly1305(key).encrypt(struct.pack("<IQ", 0, counter), items, header)


def item(kind, body):
    return struct.pack("<HH", kind, len(body)) + body


def vectors():
    pattern = lambda start, length: bytes((start + i) & 0xFF for i in range(length))
    i_static, r_static = pattern(0x11, 32), pattern(0x51, 32)
    identity = fingerprint(public(r_static))
    result = {
        "identities": [
            {"private": key, "public": public(key), "fingerprint": fingerprint(public(key))} for key in (i_static, r_static)
        ],
        "channel_tags": [
            {"label": label, "tag": sha256(b"taran-ts/1 channel", label.encode())[:4]}
            for label in ("40456", "224.20.30.39:40456", "resolver", "orders")
        ],
        "text_checks": [
            {"kind": kind, "key": pattern(9, 32), "check": sha256(b"taran-ts/1 text", kind.encode(), pattern(9, 32))[:4]}
            for kind in ("taran-key-1", "taran-pub-1", "taran-psk-1")
        ],
    }
    keys, sealed, announcements = [], [], []
    setup = base(40, 5, 0x40) + struct.pack("<iiiiiiii", 64, -7, 1001, 12, 13, 65536, 1408, 0)
    for suite in SUITES:
        for role, session, stream, receiver in ((b"stream", -7, 1001, None), (b"back", 0, 0, -12345)):
            secret, epoch = pattern(suite, 32), 70000 + suite
            derived = derive(role, secret, suite, identity, session, stream, epoch, receiver)
            context = {
                "role": role.decode(),
                "suite": suite,
                "secret": secret,
                "identity": identity,
                "session": session,
                "stream": stream,
                "epoch": epoch,
                "receiver": receiver or 0,
            }
            keys.append(context | dict(zip(("key", "iv", "id"), derived)))
            kind = SEALED if role == b"stream" else BACK
            frames = [seal(suite, derived, kind, counter, pattern(counter, length)) for counter, length in enumerate((32, 0, 333, 1408))]
            sealed.append(context | {"plain_lengths": [32, 0, 333, 1408], "frames": frames})
            if kind == SEALED:
                frame = announce(suite, derived, 0, identity, 0x1122334455667788, session, stream, epoch, setup)
                announcements.append(context | {"incarnation": 0x1122334455667788, "setup": setup, "frame": frame})
    result |= {"keys": keys, "sealed": sealed, "announcements": announcements}
    result["hint"] = {
        "flags": 0x40, "identity": identity, "incarnation": 5, "session": 6, "stream": -7,
        "frame": hint(0x40, identity, 5, 6, -7),
    }
    result["hello"] = {
        "key_id": pattern(1, 8), "random": pattern(2, 16), "session": 6, "stream": -7,
        "frame": hello(pattern(1, 8), pattern(2, 16), 6, -7),
    }
    result["handshakes"] = []
    for psk in (b"\0" * 32, pattern(0x77, 32)):
        i_link, r_link = 0x0102030405060708, 0x1112131415161718
        head = base(192, INIT) + struct.pack("<Q", i_link) + identity
        tag = sha256(b"taran-ts/1 channel", b"40456")[:4]
        payload1 = struct.pack("<HH", 1, 0b1110) + tag + struct.pack("<qQ", -99, 0xAABBCCDD)
        payload2 = struct.pack("<HHIQQ", 1, 2, 0, 0xEEFF, r_link)
        i_ephemeral, r_ephemeral = pattern(0x91, 32), pattern(0xD1, 32)
        message1, message2, there, back = handshake(
            i_static, i_ephemeral, r_static, r_ephemeral, psk, head, payload1, payload2
        )
        init = head + message1
        init += mac1(public(r_static), init) + b"\0" * 24
        resp = base(112, RESP) + struct.pack("<QQ", i_link, r_link) + message2
        resp += mac1(public(i_static), resp)
        items = item(4, struct.pack("<IHH", 8, 1, 0) + pattern(3, 32)) + item(1, struct.pack("<IIii", 1, 0, -7, 1001))
        grant = struct.pack("<IiiIHHQI", 1, -7, 1001, 9, 1, 1, 10, 3660) + identity + pattern(5, 32)
        answer = item(2, grant) + item(5, pattern(6, 8))
        result["handshakes"].append({
            "psk": psk, "initiator": i_static, "initiator_ephemeral": i_ephemeral, "responder": r_static,
            "responder_ephemeral": r_ephemeral, "initiator_link": i_link, "responder_link": r_link,
            "channel_tag": tag, "suites": 0b1110, "receiver": -99, "initiator_incarnation": 0xAABBCCDD,
            "suite": 2, "responder_incarnation": 0xEEFF, "init": init, "resp": resp,
            "request_items": items, "request": pair(there, r_link, 0, items),
            "grant_items": answer, "grant": pair(back, i_link, 0, answer),
        })
    return result


def text(value):
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError(type(value))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--write", metavar="FILE")
    group.add_argument("--check", metavar="FILE")
    arguments = parser.parse_args()
    computed = json.dumps(vectors(), indent=1, default=text) + "\n"
    if arguments.write:
        with open(arguments.write, "w", encoding="ascii") as file:
            file.write(computed)
        return 0
    with open(arguments.check, encoding="ascii") as file:
        committed = file.read()
    if computed != committed:
        print(f"{arguments.check} is not what ts1.py computes", file=sys.stderr)
        return 1
    print(f"{arguments.check}: {len(committed)} bytes agree")
    return 0


if __name__ == "__main__":
    sys.exit(main())
