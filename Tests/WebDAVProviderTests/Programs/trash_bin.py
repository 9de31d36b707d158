"""The trash bin of file_id_server: what Nextcloud documents of its own, and what its source and ownCloud's say beside that.

What is deleted gets the name NAME.dSECONDS, and what has that name already is lost, as it is there: two of one name must not be
deleted within a second. A name that is too long for that is cut in its middle, and then the bin does not know where it was.
An item's tag in the bin is the time at which it was deleted. What is brought back goes to where it was, beside what has its
name by now, or among all files when its directory is gone, and gets another tag. Later versions have in the bin, too, the
directories in which things were ("nested"): these were not deleted at any time.
"""

import secrets
import time

LONGEST = 250


class Trashed:
    def __init__(self, node, location, time):
        self.node, self.location, self.time = node, location, time


class TrashBin:
    def __init__(self, files):
        # The node that holds all files of the user.
        self.files = files
        self.entries = {}
        # "nextcloud", "nested", "owncloud", or None for a server without.
        self.kind = "nextcloud"
        # What is larger is deleted for good.
        self.limit = None

    @staticmethod
    def called(name, seconds):
        """What a name is called in the bin, as bytes are counted."""
        whole = (name + ".d%d" % seconds).encode(errors="surrogateescape")
        if len(whole) > LONGEST:
            whole = whole[:LONGEST // 2] + whole[LONGEST // 2 + len(whole) - LONGEST:]
        return whole.decode(errors="surrogateescape")

    def take(self, names, node):
        """Takes what was at a path among the files; whether it is kept."""
        if self.kind is None or self.limit is not None and node.size() >= self.limit:
            return False
        seconds = int(time.time())
        above = names[:-1] if self.kind == "nested" else []
        self.entries["/".join(above + [self.called(names[-1], seconds)])] = Trashed(node, names, seconds)
        return True

    def listed(self, names):
        """What is in the bin, or in a directory there that was not deleted; none for anything else."""
        below = [key.split("/") for key in self.entries]
        return sorted({key[len(names)] for key in below if key[:len(names)] == names and len(key) > len(names)})

    def name(self, key):
        """What an item is said to have been called."""
        trashed = self.entries[key]
        return key.split("/")[-1][:-len(".d%d" % trashed.time)]

    def original(self, key):
        trashed = self.entries[key]
        name = self.name(key)
        return "/".join(trashed.location) if name == trashed.location[-1] else name

    def find(self, names):
        """The trashed item that a path in the bin leads into, and the nodes from it down; None where there is no such thing."""
        if self.kind == "owncloud":
            return self.find_by_number(names[-1])
        key = next((key for key in self.entries if key.split("/") == names[:key.count("/") + 1]), None)
        if key is None:
            return None
        nodes, below = [self.entries[key].node], names[key.count("/") + 1:]
        for name in below:
            if not nodes[-1].is_folder or name not in nodes[-1].children:
                return None
            nodes.append(nodes[-1].children[name])
        return key, nodes, below

    def find_by_number(self, number):
        def search(nodes, names):
            if str(nodes[-1].id) == number:
                return nodes, names
            for name, child in (nodes[-1].children or {}).items():
                if found := search(nodes + [child], names + [name]):
                    return found
            return None
        for key, trashed in self.entries.items():
            if found := search([trashed.node], []):
                return key, *found
        return None

    def remove(self, found):
        key, nodes, names = found
        if names:
            del nodes[-2].children[names[-1]]
        else:
            del self.entries[key]

    def restore(self, found):
        """Brings an item back to where it was."""
        key, nodes, names = found
        if names:
            location, name = [], names[-1]
        else:
            name = self.name(key)
            location = self.entries[key].location[:-1] if "/" in self.original(key) else []
        folder = self.files
        for part in location:
            folder = folder.children.get(part) if folder and folder.is_folder else None
        folder = folder if folder and folder.is_folder else self.files
        stem, dot, ending = name.rpartition(".")
        if not stem:
            stem, dot, ending = name, "", ""
        free, number = name, 1
        while free in folder.children:
            mark = " (restored)" if number == 1 else " (restored %d)" % number
            free, number = stem + mark + dot + ending, number + 1
        self.remove(found)
        folder.children[free] = nodes[-1]
        nodes[-1].tag = secrets.token_hex(16)
