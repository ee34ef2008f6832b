#!/usr/bin/python3
"""Encrypts manifests as SOPS does, from its documentation, with age for the data key: what the reader is held against in tests.

sops.py [--json] [--encrypted-regex R | --unencrypted-suffix S] [--mac-only-encrypted] --age RECIPIENT... < plain > encrypted
"""

import argparse
import base64
import hashlib
import json
import os
import re
import subprocess
import sys

import yaml
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

TIME = "2025-06-01T12:00:00Z"
MAC_ONLY = bytes.fromhex("8a3fd2ad54ce66527b1034f3d147be0b0b975b3bf44f72c6fdadec8176f27d69")


def spelled(value):
    if isinstance(value, bool):
        return "bool", "True" if value else "False"
    if isinstance(value, int):
        return "int", str(value)
    if isinstance(value, float):
        return "float", str(int(value)) if value.is_integer() else repr(value)
    return "str", value


class Tree:
    def __init__(self, options):
        self.options, self.key, self.mac = options, os.urandom(32), hashlib.sha512()
        if options.mac_only_encrypted:
            self.mac.update(MAC_ONLY)

    def is_encrypted(self, path):
        if self.options.encrypted_regex:
            return any(re.search(self.options.encrypted_regex, key) for key in path)
        return not any(key.endswith(self.options.unencrypted_suffix) for key in path)

    def seal(self, kind, text, place):
        nonce = os.urandom(32)
        sealed = AESGCM(self.key).encrypt(nonce, text.encode(), place.encode())
        parts = [base64.b64encode(part).decode() for part in (sealed[:-16], nonce, sealed[-16:])]
        return "ENC[AES256_GCM,data:%s,iv:%s,tag:%s,type:%s]" % (*parts, kind)

    def walk(self, value, path):
        if isinstance(value, dict):
            return {key: self.walk(item, path + [str(key)]) for key, item in value.items()}
        if isinstance(value, list):
            return [self.walk(item, path) for item in value]
        if value is None:
            return None
        kind, text = spelled(value)
        encrypted = self.is_encrypted(path)
        if encrypted or not self.options.mac_only_encrypted:
            self.mac.update(text.encode())
        if not encrypted or text == "":
            return value
        return self.seal(kind, text, ":".join(path) + ":")

    def metadata(self):
        def wrapped(recipient):
            command = ["age", "--encrypt", "--armor", "--recipient", recipient]
            return subprocess.run(command, input=self.key, stdout=subprocess.PIPE, check=True).stdout.decode()

        metadata = {
            "age": [{"recipient": recipient, "enc": wrapped(recipient)} for recipient in self.options.age],
            "lastmodified": TIME,
            "mac": self.seal("str", self.mac.hexdigest().upper(), TIME),
        }
        if self.options.encrypted_regex:
            metadata["encrypted_regex"] = self.options.encrypted_regex
        else:
            metadata["unencrypted_suffix"] = self.options.unencrypted_suffix
        if self.options.mac_only_encrypted:
            metadata["mac_only_encrypted"] = True
        metadata["version"] = "3.10.2"
        return metadata


class Dumper(yaml.SafeDumper):
    """Texts of several lines stand as blocks, as SOPS writes them."""

    def ignore_aliases(self, data):
        return True


def text(dumper, value):
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


Dumper.add_representer(str, text)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--json", action="store_true")
    arguments.add_argument("--encrypted-regex")
    arguments.add_argument("--unencrypted-suffix", default="_unencrypted")
    arguments.add_argument("--mac-only-encrypted", action="store_true")
    arguments.add_argument("--age", action="append", required=True)
    options = arguments.parse_args()
    plain = sys.stdin.read()
    documents = [json.loads(plain)] if options.json else list(yaml.safe_load_all(plain))
    tree = Tree(options)
    sealed = [tree.walk(document, []) for document in documents]
    metadata = tree.metadata()
    sealed = [{**document, "sops": metadata} for document in sealed]
    if options.json:
        json.dump(sealed[0], sys.stdout, indent="\t")
    else:
        yaml.dump_all(sealed, sys.stdout, Dumper=Dumper, sort_keys=False, indent=4, width=1 << 20)


main()
