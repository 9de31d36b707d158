/// The types of the messages of protocol 3.
enum SFTPMessage {
    static let initialize: UInt8 = 1
    static let version: UInt8 = 2
    static let open: UInt8 = 3
    static let close: UInt8 = 4
    static let read: UInt8 = 5
    static let write: UInt8 = 6
    static let lstat: UInt8 = 7
    static let fstat: UInt8 = 8
    static let setstat: UInt8 = 9
    static let opendir: UInt8 = 11
    static let readdir: UInt8 = 12
    static let remove: UInt8 = 13
    static let mkdir: UInt8 = 14
    static let rmdir: UInt8 = 15
    static let stat: UInt8 = 17
    static let rename: UInt8 = 18
    static let readlink: UInt8 = 19
    static let symlink: UInt8 = 20
    static let status: UInt8 = 101
    static let handle: UInt8 = 102
    static let data: UInt8 = 103
    static let name: UInt8 = 104
    static let attributes: UInt8 = 105
    static let extended: UInt8 = 200
    static let extendedReply: UInt8 = 201
}

struct SFTPReply: Hashable, Sendable {
    var type: UInt8
    var identifier: UInt32
    var body: [UInt8]
}

/// A response that is no success.
struct SFTPStatus: Error, Hashable {
    static let endOfFile: UInt32 = 1
    static let noSuchFile: UInt32 = 2
    static let permissionDenied: UInt32 = 3
    static let failure: UInt32 = 4
    static let unsupported: UInt32 = 8

    var code: UInt32
    /// In the words of the server; empty when it said nothing.
    var message: String
}

/// The attributes of a file; nil for those that are unknown, or not to be changed.
struct SFTPAttributes: Hashable, Sendable {
    var size: UInt64?
    /// With the bits of the file's type.
    var permissions: UInt32?
    /// Seconds since 1970.
    var modified: UInt32?

    /// Whether they tell the kind of the item, and the size of a file.
    var areComplete: Bool {
        guard let permissions else { return false }
        return size != nil || ![0o100000, 0].contains(permissions & 0o170000)
    }

    init(permissions: UInt32? = nil, modified: UInt32? = nil) {
        (self.permissions, self.modified) = (permissions, modified)
    }

    init(_ reader: inout SFTPReader) throws(SFTPReader.Malformed) {
        let flags = try reader.uint32()
        if flags & 1 != 0 { size = try reader.uint64() }
        if flags & 2 != 0 { _ = try reader.uint64() }
        if flags & 4 != 0 { permissions = try reader.uint32() }
        if flags & 8 != 0 {
            _ = try reader.uint32()
            modified = try reader.uint32()
        }
        guard flags & 0x8000_0000 != 0 else { return }
        var count = try reader.uint32()
        while count > 0 {
            _ = try reader.string()
            _ = try reader.string()
            count -= 1
        }
    }

    func write(to writer: inout SFTPWriter) {
        writer.append(UInt32(permissions == nil ? 0 : 4) | UInt32(modified == nil ? 0 : 8))
        if let permissions { writer.append(permissions) }
        if let modified {
            writer.append(modified)
            writer.append(modified)
        }
    }
}

/// A name in a directory, with the attributes of its item.
struct SFTPName: Hashable, Sendable {
    var name: [UInt8]
    var attributes: SFTPAttributes
}

extension SFTPReply {
    /// - Throws: ``SFTPStatus`` for a status; ``SFTPReader/Malformed`` for another type than the expected one.
    private func reader(of expected: UInt8) throws -> SFTPReader {
        guard type == expected else {
            try checkStatus()
            throw SFTPReader.Malformed()
        }
        return SFTPReader(body)
    }

    /// - Throws: ``SFTPStatus`` unless it is a success.
    func checkStatus() throws {
        guard type == SFTPMessage.status else { throw SFTPReader.Malformed() }
        var reader = SFTPReader(body)
        let code = try reader.uint32()
        guard code != 0 else { return }
        let message = (try? reader.string()) ?? []
        throw SFTPStatus(code: code, message: String(decoding: message.prefix(200), as: UTF8.self))
    }

    /// The longest handle that the draft allows, in bytes: it is sent with each request about the file.
    static let longestHandle = 256

    func handle() throws -> [UInt8] {
        var reader = try reader(of: SFTPMessage.handle)
        let handle = try reader.string()
        guard handle.count <= Self.longestHandle else { throw SFTPReader.Malformed() }
        return handle
    }

    func data() throws -> [UInt8] {
        var reader = try reader(of: SFTPMessage.data)
        return try reader.string()
    }

    func attributes() throws -> SFTPAttributes {
        var reader = try reader(of: SFTPMessage.attributes)
        return try SFTPAttributes(&reader)
    }

    func names() throws -> [SFTPName] {
        var reader = try reader(of: SFTPMessage.name)
        var names: [SFTPName] = []
        var count = try reader.uint32()
        while count > 0 {
            let name = try reader.string()
            _ = try reader.string()
            names.append(SFTPName(name: name, attributes: try SFTPAttributes(&reader)))
            count -= 1
        }
        return names
    }

    func numbers(_ count: Int) throws -> [UInt64] {
        var reader = try reader(of: SFTPMessage.extendedReply)
        var numbers: [UInt64] = []
        for _ in 0..<count { numbers.append(try reader.uint64()) }
        return numbers
    }

    /// The names of the extensions that the server announces with its version.
    func extensions() throws -> Set<String> {
        var reader = try reader(of: SFTPMessage.version)
        guard try reader.uint32() >= 3 else { throw SFTPReader.Malformed() }
        var names: Set<String> = []
        while !reader.isAtEnd {
            names.insert(String(decoding: try reader.string(), as: UTF8.self))
            _ = try reader.string()
        }
        return names
    }
}
