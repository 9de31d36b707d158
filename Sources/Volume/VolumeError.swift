import Replica
import SystemPackage

/// Why a request cannot be answered at once.
package enum VolumeError: Error, Hashable {
    /// The request fails with this errno.
    case refused(Errno)
    /// The request must be repeated after something that may take long.
    case needs(Prerequisite)
}

extension VolumeError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .refused(let error): error.description
        case .needs(let prerequisite): "needs \(prerequisite)"
        }
    }
}

/// Something that must be done before a request can be answered.
package enum Prerequisite: Hashable, Sendable {
    /// List a directory: completely, or until an entry after `beyond` is known.
    case listing(of: InodeNumber, beyond: Int64?)
    /// Fetch a range of the content version that was opened.
    case content(of: InodeNumber, version: [UInt8], range: Range<Int64>)
    /// Find out whether the process may have content of a file fetched, as far as it is not local.
    case permission(toRead: InodeNumber)
    /// Wait for a transaction that relies on the inode being closed.
    case claim(of: InodeNumber)
    /// Fetch a whole file, because it is about to be written.
    case whole(of: InodeNumber)
    /// Materialize an item and all its descendants (requested by attribute).
    case download(of: InodeNumber)
    /// Upload all pending changes at and below an item (`fsync` or requested by attribute).
    case upload(of: InodeNumber)
    /// Evict an item and all its descendants (requested by attribute).
    case eviction(of: InodeNumber)
    /// Make room on a full disk for something new.
    case room
}

/// The process that makes a request.
package struct Requester: Hashable, Sendable {
    package var processIdentifier: Int32
    package var userIdentifier: UInt32
    package var groupIdentifier: UInt32
    /// Not applied yet to the permissions of a new node.
    package var umask: UInt16

    package init(processIdentifier: Int32, userIdentifier: UInt32, groupIdentifier: UInt32, umask: UInt16 = 0) {
        self.umask = umask
        self.processIdentifier = processIdentifier
        self.userIdentifier = userIdentifier
        self.groupIdentifier = groupIdentifier
    }
}

/// Fulfils the prerequisites of parked requests.
package protocol Provisioning: Sendable {
    /// Starts to fulfil a prerequisite and returns at once. Calls `completion` once, from any thread, with nil or with the
    /// errno of the request.
    ///
    /// - Returns: cancels the work when the request is interrupted. `completion` may be called after that, or not.
    func provide(
        _ prerequisite: Prerequisite, for caller: Requester, completion: @escaping @Sendable (Errno?) -> Void
    ) -> any Cancellation
}

/// Running work that can be cancelled.
package protocol Cancellation: Sendable {
    func cancel()
}
