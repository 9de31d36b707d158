"""A notification service and a file manager on the session bus, which write their calls to a file and click on each notification.

usage: notification_service.py FILE
"""

import json
import sys

from gi.repository import Gio, GLib

INTERFACES = """
<node>
  <interface name="org.freedesktop.Notifications">
    <method name="Notify">
      <arg direction="in" type="s"/><arg direction="in" type="u"/><arg direction="in" type="s"/><arg direction="in" type="s"/>
      <arg direction="in" type="s"/><arg direction="in" type="as"/><arg direction="in" type="a{sv}"/><arg direction="in" type="i"/>
      <arg direction="out" type="u"/>
    </method>
    <method name="CloseNotification"><arg direction="in" type="u"/></method>
    <signal name="ActionInvoked"><arg type="u"/><arg type="s"/></signal>
  </interface>
  <interface name="org.freedesktop.FileManager1">
    <method name="ShowItems"><arg direction="in" type="as"/><arg direction="in" type="s"/></method>
  </interface>
</node>
"""


def write(name, arguments):
    with open(sys.argv[1], "a", encoding="utf-8") as log:
        log.write(json.dumps([name, arguments]) + "\n")


def called(bus, _sender, path, interface, method, arguments, invocation):
    write(method, arguments.unpack())
    if method != "Notify":
        return invocation.return_value(None)
    invocation.return_value(GLib.Variant("(u)", (7,)))
    GLib.timeout_add(
        100, lambda: bus.emit_signal(None, path, interface, "ActionInvoked", GLib.Variant("(us)", (7, "default"))) and False)


bus = Gio.bus_get_sync(Gio.BusType.SESSION)
for number, description in enumerate(Gio.DBusNodeInfo.new_for_xml(INTERFACES).interfaces):
    path = "/" + description.name.replace(".", "/")
    bus.register_object(path, description, called, None, None)
    Gio.bus_own_name_on_connection(bus, description.name, Gio.BusNameOwnerFlags.NONE, None, None)
GLib.idle_add(lambda: write("ready", []) or False)
GLib.MainLoop().run()
