#!/usr/bin/python3
"""Plays the system bus, and on it NetworkManager with the property Metered alone.

usage: system_bus.py ADDRESS DIRECTORY
The file `wanted` in DIRECTORY says what there is: `none` for no bus, `bus` for one without NetworkManager, or a number for the value of
the property. When it is so, the file `present` says the same. The file `read` has the value that a client has read last. Ends, with the
bus, when the process that started it does.
"""
import ctypes
import os
import signal
import subprocess
import sys
import time

import dbus
import dbus.bus
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

NAME = "org.freedesktop.NetworkManager"
PROPERTIES = "org.freedesktop.DBus.Properties"
CONFIGURATION = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
    "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
    <listen>%s</listen>
    <policy context="default">
        <allow user="*"/><allow own="*"/><allow send_destination="*"/><allow eavesdrop="false"/>
    </policy>
</busconfig>
"""
PR_SET_PDEATHSIG = 1


def write(directory, name, text):
    """Writes a file that another process finds whole."""
    place = os.path.join(directory, name)
    with open(place + ".new", "w") as file:
        file.write(text)
    os.rename(place + ".new", place)


class Manager(dbus.service.Object):
    metered = 0
    directory = None

    @dbus.service.method(PROPERTIES, in_signature="ss", out_signature="v")
    def Get(self, interface, name):
        if (interface, name) != (NAME, "Metered"):
            raise dbus.DBusException("no such property", name="org.freedesktop.DBus.Error.UnknownProperty")
        write(self.directory, "read", str(self.metered))
        return dbus.UInt32(self.metered)

    @dbus.service.signal(PROPERTIES, signature="sa{sv}as")
    def PropertiesChanged(self, interface, changed, invalidated):
        pass


class Player:
    def __init__(self, address, directory):
        self.address = address
        self.directory = directory
        self.present = None
        self.daemon = self.connection = self.manager = self.name = None
        self.parent = os.getppid()

    def tick(self):
        try:
            if os.getppid() != self.parent:
                sys.exit(0)
            return self.look()
        except BaseException as error:
            # The main loop would go on without this call. The bus ends with this process.
            print(f"system_bus.py: {error!r}", file=sys.stderr, flush=True)
            os._exit(1)

    def look(self):
        try:
            with open(os.path.join(self.directory, "wanted")) as file:
                wanted = file.read().strip()
        except FileNotFoundError:
            return True
        if wanted != self.present:
            self.make(wanted)
            self.present = wanted
            write(self.directory, "present", wanted)
        return True

    def make(self, wanted):
        if wanted == "none":
            return self.end_bus()
        self.begin_bus()
        if wanted == "bus":
            return self.end_manager()
        value = int(wanted)
        if self.manager is None:
            self.name = dbus.service.BusName(NAME, self.connection)
            self.manager = Manager(self.name, "/org/freedesktop/NetworkManager")
            self.manager.directory = self.directory
        self.manager.metered = value
        self.manager.PropertiesChanged(NAME, {"Metered": dbus.UInt32(value)}, [])
        self.connection.flush()

    def begin_bus(self):
        if self.daemon is not None:
            return
        configuration = os.path.join(self.directory, "bus.conf")
        with open(configuration, "w") as file:
            file.write(CONFIGURATION % self.address)
        libc = ctypes.CDLL(None)
        self.daemon = subprocess.Popen(
            ["dbus-daemon", "--nofork", "--nopidfile", "--config-file=" + configuration],
            stdin=subprocess.DEVNULL, preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
        end = time.monotonic() + 10
        while True:
            try:
                self.connection = dbus.bus.BusConnection(self.address)
                return
            except dbus.DBusException:
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)

    def end_manager(self):
        if self.manager is not None:
            self.manager.remove_from_connection()
            self.connection.release_name(NAME)
            self.manager = self.name = None

    def end_bus(self):
        if self.daemon is None:
            return
        self.daemon.kill()
        self.daemon.wait()
        self.daemon = self.connection = self.manager = self.name = None


def main():
    dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
    player = Player(*sys.argv[1:])
    GLib.timeout_add(20, player.tick)
    GLib.MainLoop().run()


main()
