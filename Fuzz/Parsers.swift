import FileNames
import FileProviderPaths
import Foundation
import HTTPTransport
import NIOCore
import NIOEmbedded
import WebDAVProvider

@testable import Control
@testable import Daemon
@testable import S3Provider
@testable import SFTPProvider
@testable import TarArchive
@testable import WebDAVProvider

/// The parsers of bytes that this machine did not write. Each takes any bytes: it returns or throws, and never traps or runs on.
enum Parser: String, CaseIterable, Sendable {
    /// An XML document, whole and in pieces.
    case xml
    /// The response of a WebDAV server to PROPFIND.
    case propfind
    /// A listing of a bucket.
    case listing
    /// Dates of HTTP and S3.
    case date
    /// The challenges in a `WWW-Authenticate` field.
    case challenge
    /// The daemon's configuration file.
    case configuration
    /// Lines on the control socket.
    case frames
    /// A tar archive.
    case tar
    /// File names.
    case name
    /// `~/.netrc`.
    case netrc
    /// `~/.aws/credentials`.
    case credentials
    /// The messages of an SFTP server.
    case sftp

    /// A result that contradicts itself.
    struct Contradiction: Error {
        var description: String
    }

    /// Parses bytes.
    ///
    /// - Throws: ``Contradiction`` only: a refusal of the parser is a result.
    func parse(_ bytes: [UInt8]) throws {
        switch self {
        case .xml: try xml(bytes)
        case .propfind:
            for element in elements(bytes) ?? [] { _ = DAVResource(element) }
        case .listing:
            guard let elements = elements(bytes) else { return }
            let parser = ListingParser(host: "server")
            guard (try? parser.take(elements)) != nil, let listing = try? parser.finish(after: "token") else { return }
            if listing.next == "token" { throw Contradiction(description: "a listing that does not go on") }
        case .date:
            let text = String(decoding: bytes, as: UTF8.self)
            _ = HTTPDate.seconds(from: text)
            _ = HTTPDate.timestamp(iso8601: text)
        case .challenge:
            var fields = HTTPFields()
            fields["WWW-Authenticate"] = String(decoding: bytes, as: UTF8.self)
            _ = Challenge.all(in: fields)
        case .configuration: _ = try? Configuration(text: String(decoding: bytes, as: UTF8.self))
        case .frames: frames(bytes)
        case .tar: tar(bytes)
        case .name: try name(bytes)
        case .netrc: _ = Netrc.credentials(for: "host", user: nil, in: String(decoding: bytes, as: UTF8.self))
        case .sftp: try sftp(bytes)
        case .credentials: _ = AWSFile(text: String(decoding: bytes, as: UTF8.self))
        }
    }

    private func elements(_ bytes: [UInt8]) -> [XMLElement]? {
        var reader = XMLReader()
        guard let found = try? reader.feed(bytes), (try? reader.finish()) != nil else { return nil }
        return found
    }

    /// What a document means does not depend on how it was cut.
    private func xml(_ bytes: [UInt8]) throws {
        var reader = XMLReader()
        var found: [XMLElement]? = []
        let size = Int(bytes.first ?? 0) % 7 + 1
        for start in stride(from: 0, to: bytes.count, by: size) where found != nil {
            guard let more = try? reader.feed(bytes[start..<min(start + size, bytes.count)]) else {
                found = nil
                break
            }
            found?.append(contentsOf: more)
        }
        if found != nil, (try? reader.finish()) == nil { found = nil }
        if elements(bytes) != found { throw Contradiction(description: "another document in pieces of \(size)") }
    }

    private func frames(_ bytes: [UInt8]) {
        let channel = EmbeddedChannel(handler: ByteToMessageHandler(LineDecoder()))
        defer { _ = try? channel.finish(acceptAlreadyClosed: true) }
        for piece in stride(from: 0, to: bytes.count, by: 64) {
            let buffer = ByteBuffer(bytes: bytes[piece..<min(piece + 64, bytes.count)])
            guard (try? channel.writeInbound(buffer)) != nil else { return }
        }
        while let line = try? channel.readInbound(as: ByteBuffer.self) {
            _ = try? Wire.decode(RequestMessage.self, from: line)
            _ = try? Wire.decode(AnswerMessage.self, from: line)
        }
    }

    private func tar(_ bytes: [UInt8]) {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("yonder-fuzz-\(UUID().uuidString)")
            .path
        defer { try? FileManager.default.removeItem(atPath: path) }
        guard FileManager.default.createFile(atPath: path, contents: Data(bytes)),
            let archive = try? TarArchive(at: path)
        else { return }
        _ = try? TarIndex(reading: archive, warn: { _ in })
    }

    /// Messages do not depend on how they were cut, and each can be read as every kind of response.
    private func sftp(_ bytes: [UInt8]) throws {
        func messages(_ size: Int) -> [SFTPReply] {
            var buffer = SFTPBuffer()
            var found: [SFTPReply] = []
            for start in stride(from: 0, to: bytes.count, by: size) {
                buffer.append(Array(bytes[start..<min(start + size, bytes.count)]))
                do {
                    while let message = try buffer.next() { found.append(message) }
                } catch {
                    break
                }
            }
            return found
        }
        let whole = messages(max(1, bytes.count))
        let size = Int(bytes.first ?? 0) % 7 + 1
        if messages(size) != whole { throw Contradiction(description: "other messages in pieces of \(size)") }
        for message in whole {
            for type in UInt8(SFTPMessage.status)...SFTPMessage.attributes {
                let message = SFTPReply(type: type, identifier: 1, body: message.body)
                _ = try? message.checkStatus()
                _ = try? message.handle()
                _ = try? message.data()
                _ = try? message.attributes()
                for name in (try? message.names()) ?? [] {
                    _ = RemoteEntry(FileNameText.text(of: name.name), name.attributes)
                }
            }
            _ = try? SFTPReply(type: SFTPMessage.version, identifier: 0, body: message.body).extensions()
            _ = try? SFTPReply(type: SFTPMessage.extendedReply, identifier: 1, body: message.body).numbers(8)
        }
    }

    /// Each name has a text that gives it back.
    private func name(_ bytes: [UInt8]) throws {
        let text = FileNameText.text(of: bytes)
        if FileNameText.bytes(of: text) != bytes || FileNameText.byteCount(of: text) != bytes.count {
            throw Contradiction(description: "the text of a name gives back another name")
        }
    }
}
