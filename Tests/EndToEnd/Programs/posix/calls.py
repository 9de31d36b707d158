"""The system calls, each under a short name, on one directory tree.

A `Side` is one tree: the mount, or the plain directory that it is compared with. It keeps what calls leave open
(descriptors, mappings) in slots, by name, so that later calls can use it. Every call answers with
something that can be compared: a plain value, or the name of an errno.
"""

import ctypes
import ctypes.util
import errno
import fcntl
import hashlib
import mmap
import os
import socket
import stat
import struct
import subprocess

libc = ctypes.CDLL(ctypes.util.find_library("c"), use_errno=True)
OFF = ctypes.c_int64

# Who makes a call: user, group, supplementary groups.
USERS = {
    "root": (0, 0, []),
    "ann": (65534, 65534, []),
    "bob": (65533, 65533, []),
    "eve": (65531, 65531, [65534, 65533]),
}

NOREPLACE, EXCHANGE, WHITEOUT = 1, 2, 4
KEEP_SIZE, PUNCH, COLLAPSE, ZERO, INSERT = 1, 2, 8, 16, 32
UTIME_NOW, UTIME_OMIT = (1 << 30) - 1, (1 << 30) - 2
AT_FDCWD, NOFOLLOW = -100, 0x100


def become(user):
    uid, gid, groups = USERS[user]
    os.setgroups(groups)
    os.setegid(gid)
    os.seteuid(uid)


def become_root():
    os.seteuid(0)
    os.setegid(0)
    os.setgroups([])


def checked(result):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def name_of(number):
    return errno.errorcode.get(number, str(number))


def digest(data):
    return data if len(data) <= 48 else "%d bytes, %s" % (len(data), hashlib.sha1(data).hexdigest()[:12])


def links(s):
    """A directory whose listing is not here has one link, because the number of directories in it is unknown."""
    return None if stat.S_ISDIR(s.st_mode) and not Side.counts_directories else s.st_nlink


def facts(s):
    """What of a stat is compared in a call's answer. A directory's size and a device's blocks are each system's own."""
    size = None if stat.S_ISDIR(s.st_mode) else s.st_size
    rdev = s.st_rdev if stat.S_ISCHR(s.st_mode) or stat.S_ISBLK(s.st_mode) else None
    return (oct(s.st_mode), links(s), s.st_uid, s.st_gid, size, rdev)


class Side:
    # Whether a directory's links are compared.
    counts_directories = True

    def __init__(self, base):
        self.root = os.path.abspath(base)
        self.base = self.root
        self.slots = {}

    def enter(self, folder):
        self.base = os.path.join(self.root, folder)
        os.chdir(self.base)

    def call(self, user, umask, name, args):
        """Makes one call as a user and answers with what came of it."""
        os.chdir(self.base)
        os.umask(umask)
        try:
            if user != "root":
                become(user)
            try:
                return getattr(self, "do_" + name)(*args)
            finally:
                if user != "root":
                    become_root()
                os.umask(0)
        except OSError as error:
            return name_of(error.errno)
        except (ValueError, KeyError) as error:  # An empty slot, as sequences that were cut down have them.
            return type(error).__name__

    def status(self, path):
        return os.stat(os.path.join(self.base, path))

    def close_all(self):
        for name in list(self.slots):
            self.drop(name)

    def drop(self, name):
        held = self.slots.pop(name, None)
        if isinstance(held, int):
            os.close(held)
        elif held is not None:
            held.close()

    def hold(self, name, thing):
        self.drop(name)
        self.slots[name] = thing

    # -- Names ---------------------------------------------------------------------------------------------------------

    def do_mkdir(self, path, mode=0o755):
        return os.mkdir(path, mode)

    def do_rmdir(self, path):
        return os.rmdir(path)

    def do_unlink(self, path):
        return os.unlink(path)

    def do_rename(self, old, new):
        return os.rename(old, new)

    def do_renameat2(self, old, new, flags):
        return checked(libc.renameat2(AT_FDCWD, os.fsencode(old), AT_FDCWD, os.fsencode(new), flags))

    def do_link(self, old, new):
        return os.link(old, new, follow_symlinks=False)

    def do_link_following(self, old, new):
        return os.link(old, new, follow_symlinks=True)

    def do_link_descriptor(self, slot, new):
        old = b"/proc/self/fd/%d" % self.slots[slot]
        return checked(libc.linkat(AT_FDCWD, old, AT_FDCWD, os.fsencode(new), 0x400))

    def do_symlink(self, target, path):
        return os.symlink(target, path)

    def do_readlink(self, path):
        return os.readlink(path)

    def do_mknod(self, path, mode, device=0):
        return os.mknod(path, mode, device)

    def do_bind(self, path):
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(path)

    def do_talk(self, path):
        """Binds a socket, connects to it, and sends a word through."""
        with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
            server.bind(path)
            server.listen(1)
            client.connect(path)
            client.sendall(b"word")
            return server.accept()[0].recv(16)

    def do_connect(self, path):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)

    def do_fifo(self, path):
        """Sends a word through a FIFO: one end opened, then the other."""
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            writer = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            try:
                os.write(writer, b"word")
                return os.read(reader, 16)
            finally:
                os.close(writer)
        finally:
            os.close(reader)

    def do_listdir(self, path="."):
        with os.scandir(path) as entries:
            return sorted((e.name, e.is_dir(follow_symlinks=False), e.is_symlink()) for e in entries)

    def do_getcwd_in(self, path, removing=None):
        """Goes into a directory, removes it where asked to, and looks around."""
        os.chdir(path)
        try:
            if removing is not None:
                os.rmdir(removing)
            answers = []
            for look in (lambda: os.getcwd() and None, lambda: facts(os.stat(".")), lambda: os.listdir("."),
                         lambda: os.mkdir("new"), lambda: os.close(os.open("new", os.O_CREAT | os.O_RDWR)),
                         lambda: os.stat("..") and None, lambda: os.rmdir("."), lambda: os.symlink("x", "new"),
                         lambda: os.mknod("new", stat.S_IFIFO), lambda: os.rename("a", "b"), lambda: os.chmod(".", 0o700)):
                try:
                    answers.append(look())
                except OSError as error:
                    answers.append(name_of(error.errno))
            return answers
        finally:
            os.chdir(self.base)

    # -- Attributes ----------------------------------------------------------------------------------------------------

    def do_stat(self, path):
        return facts(os.stat(path))

    def do_lstat(self, path):
        return facts(os.lstat(path))

    def do_access(self, path, mode):
        return os.access(path, mode, effective_ids=True)

    def do_chmod(self, path, mode):
        return os.chmod(path, mode)

    def do_chown(self, path, user, group):
        return os.chown(path, user, group)

    def do_lchown(self, path, user, group):
        return os.lchown(path, user, group)

    def do_utimens(self, path, accessed, modified, flags=0):
        """Times as pairs of seconds and nanoseconds; None for both means now, by the short way."""
        times = None
        if accessed is not None:
            times = (ctypes.c_int64 * 4)(*accessed, *modified)
        return checked(libc.utimensat(AT_FDCWD, os.fsencode(path), times, flags))

    def do_times(self, path):
        s = os.lstat(path)
        return (s.st_atime_ns, s.st_mtime_ns)

    def do_setxattr(self, path, name, value, flags=0):
        return os.setxattr(path, name, value, flags, follow_symlinks=False)

    def do_getxattr(self, path, name):
        return digest(os.getxattr(path, name, follow_symlinks=False))

    def do_getxattr_sized(self, path, name, size):
        buffer = ctypes.create_string_buffer(max(size, 1))
        return checked(libc.lgetxattr(os.fsencode(path), name.encode(), buffer, ctypes.c_size_t(size)))

    def do_listxattr(self, path):
        return sorted(n for n in os.listxattr(path, follow_symlinks=False) if n.startswith("user."))

    def do_listxattr_sized(self, path, size):
        buffer = ctypes.create_string_buffer(max(size, 1))
        return checked(libc.llistxattr(os.fsencode(path), buffer, ctypes.c_size_t(size)))

    def do_removexattr(self, path, name):
        return os.removexattr(path, name, follow_symlinks=False)

    def do_truncate(self, path, size):
        return checked(libc.truncate64(os.fsencode(path), OFF(size)))

    def do_statvfs(self, path):
        return os.statvfs(path).f_namemax

    # -- Open files ----------------------------------------------------------------------------------------------------

    def do_open(self, slot, path, flags, mode=0o644):
        self.hold(slot, os.open(path, flags | os.O_NONBLOCK, mode))

    def do_close(self, slot):
        if slot not in self.slots:
            raise KeyError(slot)
        self.drop(slot)

    def do_dup(self, slot, new):
        self.hold(new, os.dup(self.slots[slot]))

    def do_read(self, slot, count):
        return digest(os.read(self.slots[slot], count))

    def do_write(self, slot, data):
        return os.write(self.slots[slot], data)

    def do_pread(self, slot, count, offset):
        return digest(os.pread(self.slots[slot], count, offset))

    def do_pwrite(self, slot, data, offset):
        return os.pwrite(self.slots[slot], data, offset)

    def do_lseek(self, slot, offset, whence):
        if whence == os.SEEK_END and stat.S_ISDIR(os.fstat(self.slots[slot]).st_mode):
            return None  # Where a listing ends is each file system's own.
        return os.lseek(self.slots[slot], offset, whence)

    def do_fstat(self, slot):
        return facts(os.fstat(self.slots[slot]))

    def do_ftruncate(self, slot, size):
        return checked(libc.ftruncate64(self.slots[slot], OFF(size)))

    def do_fchmod(self, slot, mode):
        return os.fchmod(self.slots[slot], mode)

    def do_fchown(self, slot, user, group):
        return os.fchown(self.slots[slot], user, group)

    def do_futimens(self, slot, accessed, modified):
        times = (ctypes.c_int64 * 4)(*accessed, *modified)
        return checked(libc.futimens(self.slots[slot], times))

    def do_fsync(self, slot):
        return os.fsync(self.slots[slot])

    def do_fdatasync(self, slot):
        return os.fdatasync(self.slots[slot])

    def do_fsetxattr(self, slot, name, value):
        return os.setxattr(self.slots[slot], name, value)

    def do_fallocate(self, slot, mode, offset, length):
        return checked(libc.fallocate64(self.slots[slot], mode, OFF(offset), OFF(length)))

    def do_copy_range(self, source, source_offset, target, target_offset, count):
        return os.copy_file_range(self.slots[source], self.slots[target], count, source_offset, target_offset)

    def do_sendfile(self, source, offset, target, count):
        return os.sendfile(self.slots[target], self.slots[source], offset, count)

    def do_splice(self, source, target, count):
        """Through a pipe, as splice wants it."""
        ends = os.pipe()
        try:
            moved = os.splice(self.slots[source], ends[1], count)
            return os.splice(ends[0], self.slots[target], moved) if moved else 0
        finally:
            os.close(ends[0])
            os.close(ends[1])

    def do_data_and_holes(self, slot):
        """The ends of the file's data as lseek has them: only what every file system must agree on."""
        held = self.slots[slot]
        # Where a directory's data end every file system says in its own way.
        if stat.S_ISDIR(os.fstat(held).st_mode):
            return []
        answers = []
        for offset, whence in ((0, os.SEEK_HOLE), (-1, os.SEEK_DATA), (1 << 40, os.SEEK_DATA), (1 << 40, os.SEEK_HOLE)):
            try:
                found = os.lseek(held, offset, whence)
                answers.append(found <= os.fstat(held).st_size)
            except OSError as error:
                answers.append(name_of(error.errno))
        return answers

    # Direct input and output wants memory that begins at a page.
    def do_direct_write(self, slot, byte, count, offset):
        with mmap.mmap(-1, count) as page:
            page.write(byte * count)
            return os.pwritev(self.slots[slot], [page], offset)

    def do_direct_read(self, slot, count, offset):
        with mmap.mmap(-1, count) as page:
            got = os.preadv(self.slots[slot], [page], offset)
            return (got, digest(page[:got]))

    # -- Memory --------------------------------------------------------------------------------------------------------

    def do_mmap(self, slot, descriptor, length, writing=True):
        access = mmap.PROT_READ | (mmap.PROT_WRITE if writing else 0)
        self.hold(slot, mmap.mmap(self.slots[descriptor], length, mmap.MAP_SHARED, access))

    def do_mmap_private(self, slot, descriptor, length):
        self.hold(slot, mmap.mmap(self.slots[descriptor], length, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE))

    def do_store(self, slot, data, offset):
        self.slots[slot][offset:offset + len(data)] = data

    def do_load(self, slot, count, offset):
        return digest(self.slots[slot][offset:offset + count])

    def do_msync(self, slot):
        self.slots[slot].flush()

    # -- Locks ---------------------------------------------------------------------------------------------------------

    def do_flock(self, slot, operation):
        return fcntl.flock(self.slots[slot], operation | fcntl.LOCK_NB)

    def do_lock(self, slot, kind, start, length):
        """A record lock of this process's."""
        fcntl.fcntl(self.slots[slot], fcntl.F_SETLK, struct.pack("hhqqi4x", kind, 0, start, length, 0))

    def do_lock_elsewhere(self, path, kind, start, length):
        """Whether another process gets a record lock."""
        return self.elsewhere(path, lambda file: fcntl.fcntl(
            file, fcntl.F_SETLK, struct.pack("hhqqi4x", kind, 0, start, length, 0)))

    def do_flock_elsewhere(self, path, operation):
        return self.elsewhere(path, lambda file: fcntl.flock(file, operation | fcntl.LOCK_NB))

    @staticmethod
    def elsewhere(path, attempt):
        child = os.fork()
        if child == 0:
            code = 255
            try:
                attempt(os.open(path, os.O_RDWR))
                code = 0
            except OSError as error:
                code = error.errno
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return name_of(code) if code else None

    # -- Whole programs ------------------------------------------------------------------------------------------------

    def do_execute(self, path):
        try:
            return subprocess.run([os.path.join(".", path)], stdout=subprocess.PIPE, timeout=20).stdout
        except subprocess.SubprocessError as error:
            return type(error).__name__

    def do_tmpfile(self, slot, path):
        """O_TMPFILE, which a file system may refuse altogether."""
        self.hold(slot, os.open(path, os.O_TMPFILE | os.O_RDWR, 0o600))

    def do_mount(self, path):
        checked(libc.mount(b"none", os.fsencode(path), b"tmpfs", 0, None))

    def do_umount(self, path):
        checked(libc.umount2(os.fsencode(path), 2))

    def do_whole(self, path):
        with open(path, "rb") as file:
            return digest(file.read())

    # -- Listings ------------------------------------------------------------------------------------------------------

    def do_remove_while_listed(self, path):
        """Removes each name as soon as it is read, and reads until nothing is left."""
        rounds = 0
        while True:
            removed = 0
            with Listing(path) as listing:
                for name in listing:
                    os.unlink(os.path.join(os.fsencode(path), name))
                    removed += 1
            rounds += 1
            if not removed or rounds > 50:
                return os.listdir(path)

    def do_seek_in_listing(self, path):
        """Reads from remembered places, and from the beginning again: the same names come."""
        with Listing(path) as listing:
            names, places = [], []
            for name in listing:
                names.append(name)
                places.append(listing.place())
            answers = [len(names), len(set(names))]
            for at in range(0, len(names), 97):
                listing.seek(places[at])
                answers.append(list(listing) == names[at + 1:])
            listing.rewind()
            answers.append(list(listing) == names)
            os.mkdir(os.path.join(path, "later"))
            listing.rewind()
            answers.append(sorted(listing) == sorted(names + [b"later"]))
            return answers

    def do_list_while_made(self, path):
        """Names that were there before come once, whatever is made and removed meanwhile."""
        before = set(os.listdir(os.fsencode(path)))
        came = []
        with Listing(path) as listing:
            for count, name in enumerate(listing):
                came.append(name)
                os.mkdir(os.path.join(path, "made%d" % count)) if count % 50 == 0 else None
                if count > 3000:
                    return "endless"
        old = [name for name in came if name in before]
        return [len(old), set(old) == before]


class Dirent(ctypes.Structure):
    _fields_ = [("ino", ctypes.c_uint64), ("off", ctypes.c_int64), ("reclen", ctypes.c_uint16),
                ("type", ctypes.c_uint8), ("name", ctypes.c_char * 256)]


libc.opendir.restype = ctypes.c_void_p
libc.readdir64.restype = ctypes.POINTER(Dirent)
libc.readdir64.argtypes = libc.telldir.argtypes = libc.rewinddir.argtypes = libc.closedir.argtypes = [ctypes.c_void_p]
libc.telldir.restype = ctypes.c_long
libc.seekdir.argtypes = [ctypes.c_void_p, ctypes.c_long]


class Listing:
    """A directory stream, with places."""

    def __init__(self, path):
        self.stream = libc.opendir(os.fsencode(path))
        if not self.stream:
            raise OSError(ctypes.get_errno(), path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        libc.closedir(self.stream)

    def __iter__(self):
        while entry := libc.readdir64(self.stream):
            if entry.contents.name not in (b".", b".."):
                yield bytes(entry.contents.name)

    def place(self):
        return libc.telldir(self.stream)

    def seek(self, place):
        libc.seekdir(self.stream, place)

    def rewind(self):
        libc.rewinddir(self.stream)
