import FileProvider
import Syscalls
import SystemPackage

/// A file that was made and is not in the database yet.
struct NewFile: Hashable, Sendable {
    /// In the order in which files were made, never used again.
    var sequence: Int64
    var number: InodeNumber
    var creation: Creation
    /// The kernel's request that made it, or changed it last.
    var request: RequestNumber?
}

/// The files that were made and are not in the database yet, on the disk: what is in it survives the daemon's death.
///
/// A header that says of which database it is, then a record for each file and each change of its attributes: its length, a
/// checksum, and the file. Of several records of one file the last counts. A record that was not written to its end is as if it
/// had not been begun.
struct NewFileLog: Sendable {
    private var log: LogFile

    var size: Int64 { log.size }

    /// Opens the log beside a database, and empties it if it is another database's.
    ///
    /// - Parameter identity: tells databases apart.
    /// - Returns: the log, and the files in it.
    static func open(at path: FilePath, of identity: String) throws -> (log: NewFileLog, files: [NewFile]) {
        var (log, records) = try LogFile.open(at: path, title: title, of: identity)
        do {
            let (files, used) = files(in: records)
            log.use(Int64(used))
            // An incomplete record would hide all records after it.
            if log.recordSize < records.count { try log.trim() }
            return (NewFileLog(log: log), files)
        } catch {
            log.close()
            throw error
        }
    }

    /// The files in a log, without changing it; nil without a log.
    static func read(at path: FilePath) throws -> (identity: String, files: [NewFile])? {
        try LogFile.read(at: path, title: title).map { ($0.identity, files(in: $0.records).files) }
    }

    private static let title = "yonder new files 3"

    /// - Returns: the files, and how many bytes they have in the log.
    private static func files(in records: ArraySlice<UInt8>) -> (files: [NewFile], used: Int) {
        var (files, used): ([NewFile], Int) = ([], 0)
        var reader = RecordReader(records)
        while let record = reader.nextRecord(), let new = NewFile(record: record) {
            files.append(new)
            used = records.count - reader.rest.count
        }
        return (files, used)
    }

    mutating func append(_ new: NewFile) throws(Errno) { try log.append(new.record) }

    /// Everything in it is in the database.
    ///
    /// - Parameter kept: files that stay in it, for the answers to their requests. A daemon that is killed in between leaves
    ///   these records and a rest whose checksum is wrong, or whose files are in the database as well.
    mutating func clear(keeping kept: [NewFile] = []) throws(Errno) { try log.replace(with: kept.flatMap(\.record)) }

    func close() { log.close() }
}

extension NewFile {
    /// Length of what follows the checksum, checksum, fields, name.
    fileprivate var record: [UInt8] {
        var writer = RecordWriter(capacity: 128 + creation.item.name.utf8.count)
        writer.beginRecord()
        writer.put(sequence)
        writer.put(number.rawValue)
        writer.put(UInt8(request == nil ? 0 : 1))
        writer.put(request?.rawValue ?? 0)
        writer.put(creation.item.parent.rawValue)
        writer.put(creation.item.madeAt.nanosecondsSince1970)
        writer.put(creation.item.template)
        writer.put(creation.item.capabilities.rawValue)
        writer.put(creation.owner)
        writer.put(creation.group)
        writer.put(creation.new.permissions)
        let inode = creation.inode(number)
        writer.put(inode.modifiedAt.nanosecondsSince1970)
        writer.put((inode.accessedAt ?? inode.modifiedAt).nanosecondsSince1970)
        writer.put(inode.changedAt.nanosecondsSince1970)
        writer.put(creation.item.name.utf8)
        writer.endRecord()
        return writer.bytes
    }

    fileprivate init?(record: ArraySlice<UInt8>) {
        var reader = RecordReader(record)
        guard let sequence: Int64 = reader.next(), let number: Int64 = reader.next(),
            let hasRequest: UInt8 = reader.next(), let request: UInt64 = reader.next(),
            let parent: Int64 = reader.next(),
            let madeAt: Int64 = reader.next(), let template: Int64 = reader.next(),
            let capabilities: UInt32 = reader.next(), let owner: UInt32 = reader.next(),
            let group: UInt32 = reader.next(), let permissions: UInt16 = reader.next(),
            let modifiedAt: Int64 = reader.next(), let accessedAt: Int64 = reader.next(),
            let changedAt: Int64 = reader.next()
        else { return nil }
        let item = NewItem(
            kind: .file, name: String(decoding: reader.rest, as: UTF8.self), parent: InodeNumber(rawValue: parent),
            capabilities: ItemCapabilities(rawValue: capabilities),
            madeAt: FileTimestamp(nanosecondsSince1970: madeAt), template: template)
        self.init(
            sequence: sequence, number: InodeNumber(rawValue: number),
            creation: Creation(
                item: item, new: NewInode(kind: .file, permissions: permissions), owner: owner, group: group,
                isWritten: true, modifiedAt: FileTimestamp(nanosecondsSince1970: modifiedAt),
                accessedAt: FileTimestamp(nanosecondsSince1970: accessedAt),
                changedAt: FileTimestamp(nanosecondsSince1970: changedAt)),
            request: hasRequest != 0 ? RequestNumber(rawValue: request) : nil)
    }
}
