import FileNames
import Foundation

/// The file in a trash's `info` directory that says where an item was. (The FreeDesktop.org Trash specification)
package enum TrashInformation {
    /// What follows the item's name in the file's.
    package static let ending = ".trashinfo"
    /// In bytes: of a path of 4,096 bytes that are all escaped.
    package static let longest: Int64 = 16 << 10
    private static let start = "[Trash Info]\nPath="
    private static let dateKey = "DeletionDate="

    /// - Parameter path: where the item was, from the directory that the trash is in.
    package static func text(path: [String], date: FileTimestamp) -> [UInt8] {
        let place = path.map { PercentEncoding.encode(bytes: FileNameText.bytes(of: $0)) }.joined(separator: "/")
        return Array("\(start)\(place)\n\(dateKey)\(localTime(date))\n".utf8)
    }

    /// Whether a file holds what ``text(path:date:)`` returns.
    package static func isText(_ bytes: [UInt8]) -> Bool {
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        return bytes.starts(with: start.utf8) && lines.count == 4 && lines[3].isEmpty
            && lines[2].starts(with: dateKey.utf8)
    }

    /// When the item was trashed; nil where the file does not say it.
    package static func date(in bytes: [UInt8]) -> FileTimestamp? {
        let line = bytes.split(separator: UInt8(ascii: "\n")).first { $0.starts(with: dateKey.utf8) }
        return line.flatMap { time(ofLocal: String(decoding: $0.dropFirst(dateKey.utf8.count), as: UTF8.self)) }
    }

    /// Local time, to the second.
    private static func localTime(_ time: FileTimestamp) -> String {
        var seconds = time_t(time.seconds)
        var parts = tm()
        localtime_r(&seconds, &parts)
        return parts.iso8601
    }

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
}

extension tm {
    /// The date and the time as ISO 8601 has them, without a zone: `2009-10-12T17:50:30`.
    package var iso8601: String {
        let day = [(tm_year + 1900).padded(to: 4), (tm_mon + 1).padded(to: 2), tm_mday.padded(to: 2)]
        let clock = [tm_hour, tm_min, tm_sec].map { $0.padded(to: 2) }
        return day.joined(separator: "-") + "T" + clock.joined(separator: ":")
    }
}
