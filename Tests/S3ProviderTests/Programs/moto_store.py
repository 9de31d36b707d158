"""moto, an object store in memory that checks the conditions of writes and deletions as Amazon's does, but no signatures.

usage: moto_store.py FOLDER   (with the python that moto is installed for)
FOLDER/port is there when it answers. Ends with the process that started it.
"""

import logging
import os
import sys
import time

logging.disable(logging.CRITICAL)

from moto.moto_server.threaded_moto_server import ThreadedMotoServer

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
path = os.path.join(sys.argv[1], "port")
with open(path + ".new", "w") as file:
    file.write(str(server.get_host_and_port()[1]))
os.rename(path + ".new", path)
parent = os.getppid()
while os.getppid() == parent:
    time.sleep(0.5)
server.stop()
