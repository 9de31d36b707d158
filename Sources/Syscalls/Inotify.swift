import FileNames
import CSyscalls
import Foundation
import Glibc
import Synchronization
import SystemPackage

/// Watches directories for changes. (inotify)
///
/// One thread waits; watches are added and removed, and events read, from any.
package final class Inotify: Sendable {
    package struct Event: Hashable, Sendable {
        package enum Kind: Hashable, Sendable {
            /// A name appeared, or its file changed.
            case changed
            case removed
            /// A file was moved away, within the watched directories or out of them.
            case movedAway
            case directoryChanged
            /// The directory was removed, and the watch with it.
            case ended
            /// Events were lost.
            case overflow
        }

        package var watch: Int32
        package var kind: Kind
        /// Encoded by ``FileNameText``; nil for the directory itself.
        package var name: String?
        /// Whether the file was written or resized, got another modification time alone, or was closed by a process that might write it.
        /// A change of mode, owner, links or extended attributes is none of these.
        package var isWrite = false
        /// Joins the two events of a move; 0 for others.
        package var cookie: UInt32 = 0
    }

    private let descriptor: FileDescriptor
    private let wakeUp: (readEnd: FileDescriptor, writeEnd: FileDescriptor)
    /// The kernel reports a change of the mounts to those who have the table open.
    private let mountTable: FileDescriptor?
    private let haveMountsChanged = Atomic(false)
    private let isStopped = Atomic(false)

    /// - Throws: EMFILE if this user has too many instances.
    package init() throws(Errno) {
        let raw = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
        guard raw >= 0 else { throw Errno.current }
        descriptor = FileDescriptor(rawValue: raw)
        do throws(Errno) {
            wakeUp = try FileDescriptor.closeOnExecPipe()
        } catch {
            try? descriptor.close()
            throw error
        }
        mountTable = try? FileDescriptor.open("/proc/self/mountinfo", .readOnly, options: .closeOnExec)
    }

    deinit {
        try? mountTable?.close()
        try? descriptor.close()
        try? wakeUp.readEnd.close()
        try? wakeUp.writeEnd.close()
    }

    /// Watches an open directory. Watching a directory twice returns the same watch.
    ///
    /// - Parameter tellsOfMoves: whether a move of the directory itself changes it. The directory above tells of others, if it is watched.
    /// - Throws: ENOSPC if this user has too many watches.
    package func watch(_ directory: FileDescriptor, tellsOfMoves: Bool = false) throws(Errno) -> Int32 {
        let events =
            UInt32(IN_CREATE) | UInt32(IN_DELETE) | UInt32(IN_MOVED_FROM) | UInt32(IN_MOVED_TO) | UInt32(IN_MODIFY)
            | UInt32(IN_CLOSE_WRITE) | UInt32(IN_ATTRIB) | UInt32(IN_DELETE_SELF) | UInt32(IN_ONLYDIR)
            | UInt32(IN_EXCL_UNLINK)
        let moves = tellsOfMoves ? UInt32(IN_MOVE_SELF) : 0
        let watch = inotify_add_watch(descriptor.rawValue, "/proc/self/fd/\(directory.rawValue)", events | moves)
        guard watch >= 0 else { throw Errno.current }
        return watch
    }

    /// Ends the current and all further calls of ``wait(milliseconds:)``.
    package func stop() {
        isStopped.store(true, ordering: .releasing)
        wake()
    }

    /// Ends the current or the next call of ``wait(milliseconds:)``.
    package func wake() {
        _ = try? wakeUp.writeEnd.writeAll("x".utf8)
    }

    /// Waits for events.
    ///
    /// - Parameter milliseconds: the timeout; nil for none.
    /// - Returns: whether there are any, or ``takeMountChange()`` has one, before the timeout or ``wake()``; nil after ``stop()``.
    package func wait(milliseconds: Int32?) -> Bool? {
        var ready = [
            pollfd(fd: descriptor.rawValue, events: Int16(POLLIN), revents: 0),
            pollfd(fd: wakeUp.readEnd.rawValue, events: Int16(POLLIN), revents: 0),
            pollfd(fd: mountTable?.rawValue ?? -1, events: Int16(POLLPRI), revents: 0),
        ]
        while poll(&ready, 3, milliseconds ?? -1) < 0 {
            guard Errno.current == .interrupted else { return nil }
        }
        if ready[1].revents != 0 {
            if isStopped.load(ordering: .acquiring) { return nil }
            var byte: UInt8 = 0
            _ = read(wakeUp.readEnd.rawValue, &byte, 1)
        }
        if ready[2].revents != 0 { haveMountsChanged.store(true, ordering: .relaxed) }
        return ready[0].revents != 0 || ready[2].revents != 0
    }

    /// Whether anything was mounted or unmounted in this process's namespace since the last call. (proc(5), /proc/pid/mountinfo)
    package func takeMountChange() -> Bool { haveMountsChanged.exchange(false, ordering: .relaxed) }

    /// The next events, as many as fit into a buffer; none when there are none now.
    package func next() -> [Event] {
        var events: [Event] = []
        withUnsafeTemporaryAllocation(byteCount: 1 << 16, alignment: 8) { buffer in
            let count = read(descriptor.rawValue, buffer.baseAddress, buffer.count)
            var position = 0
            let headerSize = MemoryLayout<inotify_event>.size
            while count > 0, position + headerSize <= count {
                let header = buffer.loadUnaligned(fromByteOffset: position, as: inotify_event.self)
                let end = position + headerSize + Int(header.len)
                guard end <= count else { break }
                let bytes = buffer[position + headerSize..<end].prefix { $0 != 0 }
                events.append(Self.event(header, name: Array(bytes)))
                position = end
            }
        }
        return events
    }

    private static func event(_ header: inotify_event, name: [UInt8]) -> Event {
        let mask = header.mask
        if mask & UInt32(IN_Q_OVERFLOW) != 0 { return Event(watch: -1, kind: .overflow, name: nil) }
        // What happens there is not seen any more, also when the file system is mounted again.
        if mask & UInt32(IN_UNMOUNT) != 0 { return Event(watch: header.wd, kind: .overflow, name: nil) }
        if mask & UInt32(IN_IGNORED) != 0 { return Event(watch: header.wd, kind: .ended, name: nil) }
        if name.isEmpty { return Event(watch: header.wd, kind: .directoryChanged, name: nil) }
        let kind: Event.Kind =
            mask & UInt32(IN_MOVED_FROM) != 0 ? .movedAway : mask & UInt32(IN_DELETE) != 0 ? .removed : .changed
        return Event(
            watch: header.wd, kind: kind, name: FileNameText.text(of: name),
            // The kernel sends the one without the other for a mapping, and at truncate(2).
            isWrite: mask & (UInt32(IN_MODIFY) | UInt32(IN_CLOSE_WRITE)) != 0, cookie: header.cookie)
    }
}
