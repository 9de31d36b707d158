import CFUSEShim

/// Tells the kernel to forget what it has cached: a queue with a thread of its own, in the order in which they were
/// asked for.
///
/// All functions but ``drain()`` return at once, on any thread, also on one that answers the kernel; what they ask for
/// is done later, by a thread that answers nobody, because the kernel may keep it waiting until a request on the same
/// file is answered. One that is equal to the last that waits is not sent twice. The queue is not bounded: whoever has
/// many in one go (a whole tree) awaits ``drain()`` now and then; each takes some hundred bytes until sent. That the
/// kernel does not know the file (ENOENT) is as good as success; what it refuses is lost, since nobody waits for it.
/// Nothing is sent before the session serves or after it has ended.
package final class Notifications: Sendable {
    private enum Notification: Equatable, Sendable {
        case entry(parent: NodeID, name: FileName)
        case expiry(parent: NodeID, name: FileName)
        case deletion(parent: NodeID, child: NodeID, name: FileName)
        case contents(NodeID, offset: Int64, count: Int64)
        case attributes(NodeID)
        case marker(Marker)
    }

    private let thread: MessageThread<Notification>

    init(_ connection: Connection) {
        thread = MessageThread(name: "fuse-notify") { Self.send($0, over: connection) }
    }

    /// The name is forgotten at once, with all that is known below it. Also a name that the kernel has remembered as
    /// missing.
    package func invalidateEntry(parent: NodeID, name: FileName) {
        post(.entry(parent: parent, name: name))
    }

    /// The name may mean something else now, or nothing: whoever uses it next asks. What is in use stays where it is, so
    /// that nobody's working directory is lost when nothing has changed after all.
    package func expireEntry(parent: NodeID, name: FileName) {
        post(.expiry(parent: parent, name: name))
    }

    /// The name is gone, and the node it stood for: those who watch the directory are told so (inotify), and a working
    /// directory in it is not kept alive.
    package func deleteEntry(parent: NodeID, child: NodeID, name: FileName) {
        post(.deletion(parent: parent, child: child, name: name))
    }

    /// The node's contents are other ones, in a range of bytes or altogether, and its attributes too. For a directory,
    /// altogether: its listing is another one. A name that was added needs this beside
    /// ``invalidateEntry(parent:name:)``.
    package func invalidateContents(_ node: NodeID, range: Range<Int64>? = nil) {
        // Everything from the start and a count of zero is how the kernel is told "all".
        guard let range else { return post(.contents(node, offset: 0, count: 0)) }
        if !range.isEmpty { post(.contents(node, offset: range.lowerBound, count: Int64(range.count))) }
    }

    /// The node's attributes are other ones; its cached contents stay good.
    package func invalidateAttributes(_ node: NodeID) {
        post(.attributes(node))
    }

    /// How many wait to be sent, those being sent just now not counted.
    package var pendingCount: Int { thread.count }

    /// Returns when everything asked for before has been sent, or the session has ended. Not from what answers the
    /// kernel: it might wait for itself.
    package func drain() async {
        await withCheckedContinuation { continuation in
            let marker = Marker(continuation)
            if !thread.send(.marker(marker)) { marker.resume() }
        }
    }

    func start() { thread.start() }

    func finish() {
        for case .marker(let marker) in thread.finish() { marker.resume() }
    }

    // MARK: - Private

    private func post(_ notification: Notification) {
        thread.send(notification) { $0 == notification }
    }

    private static func send(_ notification: Notification, over connection: Connection) {
        switch notification {
        case .entry(let parent, let name):
            name.withCString { _ = fuseshim_notify_entry(connection.shim, parent.rawValue, $0, $1) }
        case .expiry(let parent, let name):
            name.withCString { _ = fuseshim_notify_expire(connection.shim, parent.rawValue, $0, $1) }
        case .deletion(let parent, let child, let name):
            name.withCString { _ = fuseshim_notify_delete(connection.shim, parent.rawValue, child.rawValue, $0, $1) }
        case .contents(let node, let offset, let count):
            _ = fuseshim_notify_node(connection.shim, node.rawValue, offset, count)
        case .attributes(let node):
            _ = fuseshim_notify_node(connection.shim, node.rawValue, -1, 0)
        case .marker(let marker):
            marker.resume()
        }
    }

    /// A place in the queue that somebody waits to be reached.
    private final class Marker: Equatable, Sendable {
        private let continuation: CheckedContinuation<Void, Never>

        init(_ continuation: CheckedContinuation<Void, Never>) { self.continuation = continuation }

        func resume() { continuation.resume() }

        static func == (left: Marker, right: Marker) -> Bool { left === right }
    }
}

extension FileName {
    /// Lends the name with a zero at its end, and its length without.
    fileprivate func withCString(_ body: (UnsafePointer<CChar>, Int) -> Void) {
        var bytes = bytes
        bytes.append(0)
        bytes.withUnsafeBufferPointer { buffer in
            buffer.withMemoryRebound(to: CChar.self) { characters in
                if let start = characters.baseAddress { body(start, characters.count - 1) }
            }
        }
    }
}
