"""The tests themselves: what they may not use."""

import socket
import subprocess
import sys
import urllib.request

import pytest
from refuse_network import NetworkUsed

from coterie.data import DataError, load

ELSEWHERE = ("192.0.2.1", 80)  # an address that RFC 5737 gives to nobody


def test_no_test_reaches_another_machine():
    for call in ("connect", "connect_ex"):
        with socket.socket() as s, pytest.raises(NetworkUsed, match=r"192\.0\.2\.1"):
            getattr(s, call)(ELSEWHERE)
    with socket.socket(type=socket.SOCK_DGRAM) as s, pytest.raises(NetworkUsed):
        s.sendto(b"x", ELSEWHERE)
    with pytest.raises(NetworkUsed, match=r"example\.invalid"):
        urllib.request.urlopen("http://example.invalid/")


def test_nor_does_a_process_that_it_starts():
    code = f"import socket; socket.create_connection({ELSEWHERE})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1 and "NetworkUsed" in done.stderr


def test_this_machine_can_be_reached():
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()


def test_data_sets_that_happen_to_be_here_are_not_seen():
    with pytest.raises(DataError, match="usps was not found"):
        load("usps")
