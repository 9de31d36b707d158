import Replica
import SystemPackage

/// Why a request cannot be answered on the spot.
package enum Obstacle: Error, Sendable {
    /// It fails, and this is how.
    case refused(Errno)
    /// Something has to be done first that may take long; then the request is made again.
    case absent(Absence)
}

/// What has to be done before a request can be answered.
package enum Absence: Hashable, Sendable {
    /// A directory's listing: all of it, or what comes after a cookie.
    case listing(of: InodeNumber, beyond: Int64?)
    /// A range of a file, of the content version that was opened.
    case content(of: InodeNumber, version: [UInt8], range: Range<Int64>)
    /// All of a file, because it is to be written.
    case whole(of: InodeNumber)
    /// Everything below an item, because somebody asked.
    case download(of: InodeNumber)
    /// Everything that was changed at or below an item has to be on the remote, because somebody asked.
    case upload(of: InodeNumber)
    /// Nothing of an item or below, because somebody asked.
    case eviction(of: InodeNumber)
}

/// Who makes a request.
package struct Requester: Hashable, Sendable {
    package var processIdentifier: Int32
    package var userIdentifier: UInt32
    package var groupIdentifier: UInt32
    /// Not applied yet to the permissions of what it makes.
    package var umask: UInt16

    package init(processIdentifier: Int32, userIdentifier: UInt32, groupIdentifier: UInt32, umask: UInt16 = 0) {
        self.umask = umask
        self.processIdentifier = processIdentifier
        self.userIdentifier = userIdentifier
        self.groupIdentifier = groupIdentifier
    }
}

/// Does what may take long, for a request that waits.
package protocol Provisioning: Sendable {
    /// Sees to an absence and calls `completion` once, from any thread, with nil or with the errno that the request
    /// fails with. Returns at once.
    ///
    /// - Returns: the way to say that nobody waits any more; `completion` may then still come, or not.
    func provide(
        _ absence: Absence, for caller: Requester, completion: @escaping @Sendable (Errno?) -> Void
    ) -> any Cancellation
}

/// Something under way that can be given up.
package protocol Cancellation: Sendable {
    func cancel()
}
