"""An SSH server on loopback that serves the machine's files over SFTP, by AsyncSSH.

usage: sftp_server.py FOLDER PORT [--plain] [--bare]
FOLDER has the files host-key and authorized. With --plain it announces no extensions and refuses them; with --bare the
names in its listings have no attributes, as the draft allows.
"""

import asyncio
import logging
import os
import sys

import asyncssh
from asyncssh.sftp import SFTPServerHandler


class Server(asyncssh.SSHServer):
    def __init__(self, folder):
        self._folder = folder

    def connection_made(self, connection):
        self._connection = connection

    def begin_auth(self, username):
        self._connection.set_authorized_keys(os.path.join(self._folder, "authorized"))
        return True


class BareServer(asyncssh.SFTPServer):
    async def scandir(self, path):
        async for name in super().scandir(path):
            # With a long name the server makes none of the attributes.
            yield asyncssh.SFTPName(name.filename, name.filename)


async def main(folder, port, is_plain, is_bare):
    if is_plain:
        SFTPServerHandler._extensions = []
        SFTPServerHandler._packet_handlers = {
            kind: handler for kind, handler in SFTPServerHandler._packet_handlers.items() if isinstance(kind, int)}
    await asyncssh.create_server(
        lambda: Server(folder), "127.0.0.1", port, server_host_keys=[os.path.join(folder, "host-key")],
        sftp_factory=BareServer if is_bare else asyncssh.SFTPServer, allow_scp=False)
    await asyncio.Event().wait()


if __name__ == "__main__":
    logging.basicConfig(filename=os.path.join(sys.argv[1], "log"))
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), "--plain" in sys.argv[3:], "--bare" in sys.argv[3:]))
