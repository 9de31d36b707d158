import FileProvider

/// The kind of a file: those that remotes know, and those that stay on this machine.
package enum InodeKind: Int, Hashable, Sendable, CaseIterable {
    case file = 1
    case directory = 2
    case symbolicLink = 3
    case fifo = 4
    case characterDevice = 5
    case blockDevice = 6
    case socket = 7

    package init(_ kind: ItemKind) {
        switch kind {
        case .file: self = .file
        case .directory: self = .directory
        case .symbolicLink: self = .symbolicLink
        }
    }

    /// The kind as remotes know it; nil for what is excluded from sync.
    package var itemKind: ItemKind? {
        switch self {
        case .file: .file
        case .directory: .directory
        case .symbolicLink: .symbolicLink
        case .fifo, .characterDevice, .blockDevice, .socket: nil
        }
    }
}
