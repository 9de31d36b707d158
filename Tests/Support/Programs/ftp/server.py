"""An FTP server on loopback for one user, whose password is `secret word`. Arguments: the folder; the file for its port."""
import os, sys

from pyftpdlib.authorizers import DummyAuthorizer
from pyftpdlib.handlers import FTPHandler
from pyftpdlib.servers import ThreadedFTPServer

folder, port = sys.argv[1:]
os.makedirs(folder + "/top", exist_ok=True)
authorizer = DummyAuthorizer()
authorizer.add_user("user", "secret word", folder, perm="elradfmwMT")
FTPHandler.authorizer = authorizer
FTPHandler.auth_failed_timeout = 0
server = ThreadedFTPServer(("127.0.0.1", 0), FTPHandler)
with open(port + ".new", "w") as file:
    file.write(str(server.address[1]))
os.rename(port + ".new", port)
server.serve_forever()
