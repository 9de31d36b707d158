import Crypto
import FileProvider
import FileProviderPaths
import HTTPTransport
import Logging

/// Starts the uploads of files that are being written, and completes them.
struct EarlyUploads: Sendable {
    let prober: CapabilityProber

    private var server: WebDAVServer { prober.changes.server }
    private var client: WebDAVClient { server.client }

    /// Sends content under a hidden name until it is complete or given up.
    func receive(_ content: GrowingContent, in directory: RemotePath) async {
        guard (try? await server.connect()) != nil, !server.hasIdentifiers,
            server.capabilityStore.capabilities?.takesAnyLength != false, !content.isGivenUp,
            let hidden = try? server.hiddenFiles.make(in: directory)
        else { return }
        // Concurrently, because probing a server takes as long as sending much of a file.
        async let probe: Void = giveUpUnlessSupported(content, in: directory)
        let upload = EarlyUpload(content, hidden: hidden) { Array(SHA256.hash(data: $0)) }
        content.upload = upload
        do {
            let response = try await client.send(
                "PUT", client.root.url(of: hidden), ["Content-Type": "application/octet-stream"],
                body: .pieces(count: nil) { try await upload.next() })
            upload.end(isSent: response.head.isSuccess)
            // The caller of finish(with:) moves or deletes the hidden file.
            if !response.head.isSuccess || !upload.isTaken { server.hiddenFiles.delete(hidden) }
        } catch {
            client.transport.logger.debug("the early upload of a file was discarded: \(error)")
            upload.end(isSent: false)
            server.hiddenFiles.delete(hidden)
        }
        await probe
    }

    private func giveUpUnlessSupported(_ content: GrowingContent, in directory: RemotePath) async {
        let capabilities = try? await prober.capabilities(probingIn: directory)
        if capabilities?.takesAnyLength != true { content.giveUp() }
    }

    /// The capabilities that a write needs. While the server is probed, the sent part of the content is compared.
    func capabilities(toWrite contents: ContentSource, in directory: RemotePath) async throws -> ServerCapabilities {
        (contents.growing?.upload as? EarlyUpload)?.offer(contents)
        do {
            return try await prober.capabilities(probingIn: directory)
        } catch {
            contents.growing?.giveUp()
            throw error
        }
    }
}
