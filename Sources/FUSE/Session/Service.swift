/// A connection being served: what libfuse's callbacks are given. The serving threads retain it, so the file system is
/// released when the last of them has ended.
final class Service: Sendable {
    let connection: Connection
    let fileSystem: any FileSystem

    init(connection: Connection, fileSystem: any FileSystem) {
        self.connection = connection
        self.fileSystem = fileSystem
    }
}
