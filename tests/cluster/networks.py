"""Machines with a network between them: a namespace each, on a bridge of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.cluster.standalone import Node


class Network:
    """A bridge with an address of its own, and nodes that reach each other over it alone."""

    def __init__(self, nodes: int) -> None:
        # names and addresses (of the range for measurements) that no other test run has
        own = os.getpid()
        subnet = f"198.18.{own % 256}"
        self._bridge = f"sr{own}"
        self._spaces = [f"sr{own}-{number}" for number in range(nodes)]
        self.hub = Node(f"{subnet}.1")
        self.nodes = tuple(
            Node(f"{subnet}.{10 + number}", ("ip", "netns", "exec", space))
            for number, space in enumerate(self._spaces)
        )
        try:
            self._make()
        except BaseException:
            self.remove()
            raise

    def _make(self) -> None:
        ip("link", "add", self._bridge, "type", "bridge")
        ip("address", "add", f"{self.hub.address}/24", "dev", self._bridge)
        ip("link", "set", self._bridge, "up")
        for node, space in zip(self.nodes, self._spaces, strict=True):
            ip("netns", "add", space)
            ip("link", "add", space, "type", "veth", "peer", "name", "eth0", "netns", space)
            ip("link", "set", space, "master", self._bridge, "up")
            ip("-n", space, "address", "add", f"{node.address}/24", "dev", "eth0")
            ip("-n", space, "link", "set", "eth0", "up")
            ip("-n", space, "link", "set", "lo", "up")

    def cut(self, number: int) -> None:
        """Pull the plug of a node: nothing reaches it, and it does not notice."""
        ip("link", "set", self._spaces[number], "down")

    def remove(self) -> None:
        """Remove what there is of it; no process runs there any more."""
        for space in self._spaces:
            ip("netns", "delete", space, check=False)
            ip("link", "delete", space, check=False)
        ip("link", "delete", self._bridge, check=False)


def obstacle() -> str | None:
    """Return why there can be no such network here; None if there can."""
    if os.getuid() != 0 or shutil.which("ip") is None:
        return "network namespaces need root and the command ip"
    space = f"sr{os.getpid()}-try"
    if ip("netns", "add", space, check=False) != 0:
        return "this machine makes no network namespaces"
    possible = ip("link", "add", space, "type", "bridge", check=False)
    ip("link", "delete", space, check=False)
    ip("netns", "delete", space, check=False)
    return None if possible == 0 and Path("/run/netns").exists() else "no bridges here"


def ip(*arguments: str, check: bool = True) -> int:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, f"ip {' '.join(arguments)}: {done.stderr}"
    return done.returncode
