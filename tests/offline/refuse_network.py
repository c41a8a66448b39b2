"""No test needs a network: sockets reach this machine and nothing else.

The tests' own process imports this; Python processes that a test starts do so through
sitecustomize.py. The error is not an OSError: code that expects a broken network would swallow it.
"""

import socket

HERE = {"localhost", "127.0.0.1", "::1", "", socket.gethostname()}


class NetworkUsed(AssertionError):
    """A test tried to reach another machine."""


def local(host) -> bool:
    name = host.decode() if isinstance(host, bytes) else str(host or "")
    return name in HERE or name.startswith("127.")


def _checked(method):
    def call(self, *args):
        inet = self.family in (socket.AF_INET, socket.AF_INET6)
        if inet and isinstance(args[-1], tuple) and not local(args[-1][0]):
            raise NetworkUsed(f"a test tried to reach {args[-1]}")
        return method(self, *args)

    return call


def _resolved(lookup):
    def call(host, *args, **kwargs):
        if not local(host):
            raise NetworkUsed(f"a test tried to look up {host}")
        return lookup(host, *args, **kwargs)

    return call


socket.socket.connect = _checked(socket.socket.connect)
socket.socket.connect_ex = _checked(socket.socket.connect_ex)
socket.socket.sendto = _checked(socket.socket.sendto)
socket.getaddrinfo = _resolved(socket.getaddrinfo)
