import FileProvider
import Syscalls
import SystemPackage

/// A file of records (``RecordWriter``) behind a header that says of which database it is.
struct LogFile: Sendable {
    private let file: FileDescriptor
    private let begin: Int64
    /// Bytes that are used.
    private(set) var size: Int64

    /// Opens the log beside a database, and empties it if it is another database's.
    ///
    /// - Parameter title: the form of the records and its version.
    /// - Parameter identity: tells databases apart.
    /// - Returns: the log, of whose records none counts as used, and what is behind its header.
    static func open(
        at path: FilePath, title: String, of identity: String
    ) throws -> (log: LogFile, records: ArraySlice<UInt8>) {
        let file = try reading(path) {
            try FileDescriptor.open(
                path, .readWrite, options: [.create, .closeOnExec, .noFollow], permissions: .ownerReadWrite)
        }
        do {
            let header = Array("\(title) \(identity)\n".utf8)
            let bytes = try reading(path) { try content(of: file) }
            let log = LogFile(file: file, begin: Int64(header.count), size: Int64(header.count))
            if bytes.starts(with: header) { return (log, bytes[header.count...]) }
            try file.setLength(0)
            try file.writeAll(header.span.bytes, at: 0)
            return (log, [])
        } catch {
            try? file.close()
            throw error
        }
    }

    /// The records behind the header of a log, of whichever database it is, without changing it; nil without a log.
    ///
    /// - Throws: an error for a log that cannot be read.
    static func read(at path: FilePath, title: String) throws -> (identity: String, records: ArraySlice<UInt8>)? {
        let start = Array("\(title) ".utf8)
        let bytes: [UInt8]
        do {
            bytes = try reading(path) {
                let file = try FileDescriptor.open(path, .readOnly, options: [.closeOnExec, .noFollow])
                defer { try? file.close() }
                return try content(of: file)
            }
        } catch Errno.noSuchFileOrDirectory {
            return nil
        }
        guard bytes.starts(with: start), let end = bytes.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        return (String(decoding: bytes[start.count..<end], as: UTF8.self), bytes[(end + 1)...])
    }

    private static func content(of file: FileDescriptor) throws -> [UInt8] {
        let size = try FileStatus(of: file).size
        return try file.readBytes(at: 0, count: Int(clamping: size))
    }

    /// Says of a log that is there and cannot be read what it is. It is never taken for a missing one: it may hold changes that were
    /// answered.
    private static func reading<Value>(_ path: FilePath, _ body: () throws -> Value) throws -> Value {
        do {
            return try body()
        } catch let error as Errno where error != .noSuchFileOrDirectory && error != .noSpace {
            throw FileProviderError.posix(
                error,
                "the log '\(path)' cannot be read: \(error). It may hold the last changes that were made here: move it away "
                    + "only to give them up")
        }
    }

    /// The bytes of the records that are used.
    var recordSize: Int64 { size - begin }

    /// Sets how many bytes of records are used. The file keeps its length.
    mutating func use(_ recordSize: Int64) { size = begin + recordSize }

    /// - Throws: the error of write(2). The log is as before then.
    mutating func append(_ bytes: [UInt8]) throws(Errno) {
        do {
            try file.writeAll(bytes.span.bytes, at: size)
        } catch {
            try? file.setLength(size)
            throw error
        }
        size += Int64(bytes.count)
    }

    /// Cuts the file off behind what is used, after records in place of the first ones.
    mutating func replace(with records: [UInt8] = []) throws(Errno) {
        if !records.isEmpty { try file.writeAll(records.span.bytes, at: begin) }
        use(Int64(records.count))
        try trim()
    }

    /// Removes from the disk what is not used.
    func trim() throws(Errno) { try file.setLength(size) }

    func close() { try? file.close() }
}
