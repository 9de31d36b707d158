import FileNames
import Synchronization
import SystemPackage

/// The mounts in this process's namespace, from /proc/self/mountinfo. The mounts themselves are not accessed, because a
/// dead one may never answer.
package struct MountTable: Sendable {
    package struct Mount: Hashable, Sendable {
        /// The mount's number, which it keeps when it, or a directory above it, is moved.
        package var identifier: Int64
        /// The number of the mount that has the directory on which it is; 0 where that is not known.
        package var parent: Int64 = 0
        /// `major:minor`, the same for all mounts of one file system.
        package var device: String
        /// The directory of the file system that is mounted: `/` unless it is a part of one (a bind mount).
        package var root = "/"
        package var path: [UInt8]
        /// The file system's type, such as `fuse.yonder`.
        package var type: String
        /// The source as reported by the file system.
        package var source: String

        /// The device as ``FileStatus/device`` has it; nil if it cannot be read.
        package var deviceNumber: UInt64? {
            let numbers = device.split(separator: ":").compactMap { UInt32($0) }
            return numbers.count == 2 ? FileStatus.device(major: numbers[0], minor: numbers[1]) : nil
        }

        package var filePath: FilePath { FilePath(platformString: path.map(CChar.init(bitPattern:)) + [0]) }

        /// Whether the mount's directory is on an absolute path, or at its end.
        fileprivate func isOnWay(to path: [UInt8]) -> Bool {
            guard path.starts(with: self.path) else { return false }
            let slash = UInt8(ascii: "/")
            return path.count == self.path.count || self.path.last == slash || path[self.path.count] == slash
        }

        /// Whether the path leads through the directory of another mount.
        func isBelow(_ other: Mount) -> Bool { path != other.path && other.isOnWay(to: path) }
    }

    /// In mount order.
    package let mounts: [Mount]

    package init() throws(Errno) {
        mounts = Self.last.mounts(of: try FilePath("/proc/self/mountinfo").contents(), parse: Self.parse)
    }

    package init(parsing text: [UInt8]) {
        mounts = Self.parse(text)
    }

    private static let last = LastMountTable()

    private static func parse(_ text: [UInt8]) -> [Mount] {
        text.split(separator: UInt8(ascii: "\n")).compactMap { line in
            let fields = line.split(separator: UInt8(ascii: " "), maxSplits: 5)
            guard fields.count > 4 else { return nil }
            // Any number of optional fields, a lone hyphen, then type and source.
            let rest = line.split(separator: UInt8(ascii: " "))
            let end = rest.dropFirst(6).firstIndex { $0.elementsEqual("-".utf8) } ?? rest.endIndex
            let tail = rest.dropFirst(end + 1).prefix(2).map { String(decoding: Self.unescape($0), as: UTF8.self) }
            return Mount(
                identifier: Int64(String(decoding: fields[0], as: UTF8.self)) ?? 0,
                parent: Int64(String(decoding: fields[1], as: UTF8.self)) ?? 0,
                device: String(decoding: fields[2], as: UTF8.self),
                root: String(decoding: Self.unescape(fields[3]), as: UTF8.self), path: Self.unescape(fields[4]),
                type: tail.first ?? "", source: tail.count > 1 ? tail[1] : "")
        }
    }

    /// The topmost mount at a path.
    ///
    /// - Parameter device: of the mounts there those of this device; nil stands for any.
    package func mount(at path: FilePath, device: String? = nil) -> Mount? {
        let bytes = path.cPath.dropLast().map(UInt8.init(bitPattern:))
        return mounts.last { $0.path == bytes && (device == nil || $0.device == device) }
    }

    /// The mount to which an absolute path without symbolic links leads, as the kernel walks it. The path need not exist. A mount over `/`
    /// hides nothing from a process that has the directory below it as its root.
    ///
    /// - Parameter path: encoded by ``FileNameText``.
    package func mount(containing path: String) -> Mount? {
        let path = FileNameText.bytes(of: path)
        var onWay = mounts.filter { $0.isOnWay(to: path) }.sorted { $0.path.count < $1.path.count }
        // The root's parent is not in the table, or is the root itself.
        let identifiers = Set(mounts.lazy.map(\.identifier))
        var current = onWay.first { $0.parent == $0.identifier || !identifiers.contains($0.parent) }
        onWay.removeAll { $0 == current }
        while let here = current,
            let next = onWay.firstIndex(where: {
                $0.parent == here.identifier
                    && ($0.path != here.path || here.path != [UInt8(ascii: "/")] || here.type == "rootfs")
            })
        {
            current = onWay.remove(at: next)
        }
        return current
    }

    /// The present mounts below an absolute path without symbolic links, and those through which it leads; none if the table cannot be
    /// read.
    package static func mounts(around path: FilePath) -> Set<Mount> {
        guard let table = try? MountTable() else { return [] }
        let bytes = path.cPath.dropLast().map(UInt8.init(bitPattern:))
        return Set(
            table.mounts.filter { mount in
                mount.isOnWay(to: bytes)
                    || (mount.path.starts(with: bytes) && mount.path[bytes.count...].first == UInt8(ascii: "/"))
            })
    }

    /// Whether a mount is on the root of one of the same type.
    package func isOnAnother(_ mount: Mount) -> Bool {
        mounts.contains {
            $0.identifier == mount.parent && $0.identifier != mount.identifier && $0.path == mount.path
                && $0.type == mount.type
        }
    }

    /// The path of a mount, and whether another one covers it there, or a directory above it: then the path leads elsewhere. Nil when
    /// there is none.
    ///
    /// - Parameter device: a number is given to another mount as soon as one is gone.
    package func place(of identifier: Int64, device: String) -> (path: FilePath, isCovered: Bool)? {
        guard let mount = mounts.first(where: { $0.identifier == identifier && $0.device == device }) else {
            return nil
        }
        return (mount.filePath, isCovered(mount))
    }

    /// Whether another mount is on the root of a mount, or hides the directory on which it is, or on which a mount above it is.
    private func isCovered(_ mount: Mount) -> Bool {
        if mounts.contains(where: { $0.parent == mount.identifier && $0.path == mount.path }) { return true }
        var current = mount
        // The root's parent is not in the table, or is the root itself.
        while let parent = mounts.first(where: { $0.identifier == current.parent }), parent != current {
            if mounts.contains(where: { $0.parent == parent.identifier && current.isBelow($0) }) { return true }
            current = parent
        }
        return false
    }

    /// Whether the mount on a directory is dead: opening it fails with ENOTCONN. Blocks while a mount that is not does not answer.
    package static func isDead(_ path: FilePath) -> Bool {
        do {
            try FileDescriptor.open(path, .readOnly, options: [.directory, .closeOnExec]).close()
            return false
        } catch {
            return error as? Errno == .socketNotConnected
        }
    }

    /// Decodes space, tab, newline and backslash, which the table has as a backslash and three octal digits.
    private static func unescape(_ field: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        var rest = field
        while let byte = rest.popFirst() {
            let digits = rest.prefix(3)
            if byte == UInt8(ascii: "\\"), digits.count == 3, digits.allSatisfy({ $0 >= 48 && $0 < 56 }) {
                result.append(digits.reduce(0) { $0 &* 8 &+ ($1 - 48) })
                rest = rest.dropFirst(3)
            } else {
                result.append(byte)
            }
        }
        return result
    }
}

/// The mount table that was read last. Parsing it takes much longer than reading it, and a command with thousands of paths asks for
/// each of them where it leads. No other sign than the text tells of all changes: the kernel announces none when a directory above a
/// mount is renamed.
final class LastMountTable: Sendable {
    private let last = Mutex<(text: [UInt8], mounts: [MountTable.Mount])?>(nil)

    /// - Parameter parse: called for another text than that of the last call.
    func mounts(of text: [UInt8], parse: ([UInt8]) -> [MountTable.Mount]) -> [MountTable.Mount] {
        last.withLock { last -> [MountTable.Mount] in
            if let known = last, known.text == text { return known.mounts }
            let mounts = parse(text)
            last = (text, mounts)
            return mounts
        }
    }
}
