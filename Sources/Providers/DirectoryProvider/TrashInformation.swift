import FileNames
import FileProvider
import Foundation
import Syscalls
import SystemPackage

/// The files in the `info` directory of a trash, as specified by freedesktop.org: one for each item in `files`.
enum TrashInformation {
    /// The name of their directory, beside `files`.
    static let directory = "info"
    static let ending = ".trashinfo"

    /// Opens their directory.
    ///
    /// - Parameter trash: the open `files` directory.
    static func open(of trash: FileDescriptor) throws(Errno) -> FileDescriptor {
        let top = try trash.openDirectory(named: "..")
        defer { try? top.close() }
        return try top.openDirectory(named: directory)
    }

    static func name(of name: String) -> String { shortened(name, for: ending) }

    /// A name and an ending, with the name cut so far that both are allowed together.
    static func shortened(
        _ name: String, for ending: String, atMost limit: Int = FileProviderItem.maximumFilenameLength
    ) -> String {
        var name = name
        while FileNameText.byteCount(of: name + ending) > limit { name.unicodeScalars.removeLast() }
        return name + ending
    }

    // MARK: - The date

    /// When an item was trashed, as its file says; nil if that says nothing.
    static func date(of item: String, in trash: FileDescriptor) -> FileTimestamp? {
        guard let information = try? open(of: trash) else { return nil }
        defer { try? information.close() }
        guard let file = try? information.openFile(named: name(of: item)) else { return nil }
        defer { try? file.close() }
        guard let bytes = try? file.readBytes(at: 0, count: mostBytes) else { return nil }
        let key = Array("DeletionDate=".utf8)
        let line = bytes.split(separator: UInt8(ascii: "\n")).first { $0.starts(with: key) }
        return line.flatMap { time(ofLocal: String(decoding: $0.dropFirst(key.count), as: UTF8.self)) }
    }

    /// A path and a date are shorter.
    private static let mostBytes = 16 << 10

    /// The inverse of ``localTime(_:)``.
    private static func time(ofLocal text: String) -> FileTimestamp? {
        let numbers = text.utf8.prefix(19).split { !(0x30...0x39).contains($0) }.compactMap { Int32(Substring($0)) }
        guard numbers.count == 6 else { return nil }
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (numbers[0] - 1900, numbers[1] - 1, numbers[2])
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (numbers[3], numbers[4], numbers[5])
        // Whether it is summer time is not said.
        parts.tm_isdst = -1
        let time = FileTimestamp(seconds: Int64(mktime(&parts)))
        // There is no 30 February.
        return text.utf8.starts(with: localTime(time).utf8) ? time : nil
    }

    static func localTime(_ time: FileTimestamp) -> String {
        var seconds = time_t(time.seconds)
        var parts = tm()
        localtime_r(&seconds, &parts)
        func padded(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return "\(parts.tm_year + 1900)-\(padded(parts.tm_mon + 1))-\(padded(parts.tm_mday))"
            + "T\(padded(parts.tm_hour)):\(padded(parts.tm_min)):\(padded(parts.tm_sec))"
    }
}
