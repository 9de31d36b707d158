import CFUSEShim
import Synchronization

/// A queue of invalidations for the kernel's caches, sent in order by a thread of its own.
///
/// All functions except ``drain()`` return at once and may be called from any thread, also from a FUSE callback. The
/// thread of the queue answers no requests, because the kernel may block a notification until a request on the same file
/// is answered. A notification equal to the last one waiting is not queued twice. The queue is unbounded: a caller that
/// posts very many (a whole tree) awaits ``drain()`` now and then; each takes a few hundred bytes. ENOENT (the kernel does
/// not know the node) counts as success; other errors are ignored, because no caller waits for them. Nothing is sent
/// before the session serves or after it has ended.
///
/// The thread shares no descriptors with the rest of the process, and has the device alone. If the process is killed while the kernel
/// blocks a notification, this thread stays until the next process has answered the kernel, and would keep open all that it shares: also
/// the locks that SQLite holds on the database, so that the next process could not open it. It therefore starts no thread, which would
/// inherit its descriptors, and calls nothing that may: resuming a continuation makes Dispatch start one for it when none is idle. What the
/// thread has reached it says to another thread, which waits for that.
package final class Notifications: Sendable {
    private enum Notification: Equatable, Sendable {
        case expiry(parent: NodeID, name: FileName)
        case drop(parent: NodeID, name: FileName)
        case deletion(parent: NodeID, child: NodeID, name: FileName)
        case contents(NodeID, offset: Int64, count: Int64)
        case attributes(NodeID)
        case marker(Marker)
    }

    private struct Entry: Hashable, Sendable {
        var parent: NodeID
        var name: FileName
    }

    /// Entries whose expiry is to be sent once more.
    private struct Repetitions: Sendable {
        /// Posted since the last round.
        var recent: Set<Entry> = []
        /// Posted before it.
        var due: Set<Entry> = []
        var isRunning = false
    }

    /// The invalidations of each node's contents that the kernel has not carried out.
    private final class UnsentInvalidations: Sendable {
        private struct Unsent: Sendable {
            var count = 0
            /// The threads for which the kernel has been made to ask for the size since the last of them was posted.
            var threadsWithSize: Set<Int32> = []
        }

        private let nodes = Mutex<[NodeID: Unsent]>([:])

        func contains(_ node: NodeID) -> Bool { nodes.withLock { $0[node] != nil } }

        func add(_ notification: Notification) {
            guard case .contents(let node, _, _) = notification else { return }
            nodes.withLock { nodes in
                let count = nodes[node]?.count ?? 0
                nodes[node] = Unsent(count: count + 1)
            }
        }

        func remove(_ notification: Notification) {
            guard case .contents(let node, _, _) = notification else { return }
            nodes.withLock { nodes in
                let count = nodes[node]?.count ?? 0
                if count > 1 { nodes[node]?.count = count - 1 } else { nodes[node] = nil }
            }
        }

        func renewSize(of node: NodeID, for thread: Int32) -> Bool {
            nodes.withLock { nodes in
                guard thread != 0 else { return nodes[node] != nil }
                return nodes[node]?.threadsWithSize.insert(thread).inserted ?? false
            }
        }
    }

    private let thread = MessageThread<Notification>(name: "fuse-notify")
    /// Resumes the callers of ``drain()``.
    private let drains = MessageThread<Marker>(name: "fuse-drain")
    private let unsent = UnsentInvalidations()
    private let repetitions = Mutex(Repetitions())

    /// An expiry has been sent for the last time after twice this.
    package static let repetitionInterval = Duration.milliseconds(500)

    /// Expires a dentry, also a negative one: the kernel looks the name up again on its next use. A dentry that is in use stays connected, so
    /// that no process loses its working directory if nothing has changed. (FUSE_EXPIRE_ONLY)
    ///
    /// It is sent twice, the second time after one to two ``repetitionInterval``s. The kernel sets the lifetime of a dentry from the answer
    /// to a LOOKUP without a lock (`fuse_dentry_revalidate`): an answer that was computed before the name changed, and arrives
    /// after the expiry, would be believed for its whole lifetime.
    package func expireEntry(parent: NodeID, name: FileName) {
        post(.expiry(parent: parent, name: name))
        let isFirst = repetitions.withLock { repetitions in
            repetitions.recent.insert(Entry(parent: parent, name: name))
            defer { repetitions.isRunning = true }
            return !repetitions.isRunning
        }
        if isFirst { Task { await repeatExpiries() } }
    }

    /// Drops the dentry of a file, and with it the kernel's last reference to the node, if no process has the file open. One that is open
    /// is shown as deleted in /proc until it is looked up again. A directory would lose the processes that work in it.
    /// (FUSE_NOTIFY_INVAL_ENTRY)
    package func dropEntry(parent: NodeID, name: FileName) {
        post(.drop(parent: parent, name: name))
    }

    /// Reports the deletion of a name and its node: a working directory in it becomes dead. Kernels before 5.17 notify inotify
    /// watchers of the directory. (FUSE_NOTIFY_DELETE)
    package func deleteEntry(parent: NodeID, child: NodeID, name: FileName) {
        post(.deletion(parent: parent, child: child, name: name))
    }

    /// Drops a node's attributes and its cached pages, all of them or a range of bytes. For a directory this drops the
    /// cached listing; a new name needs this as well as ``expireEntry(parent:name:)``.
    /// (FUSE_NOTIFY_INVAL_INODE)
    package func invalidateContents(_ node: NodeID, range: Range<Int64>? = nil) {
        // Offset 0 and count 0 mean the whole file.
        guard let range else { return post(.contents(node, offset: 0, count: 0)) }
        if !range.isEmpty { post(.contents(node, offset: range.lowerBound, count: Int64(range.count))) }
    }

    /// Drops a node's attributes and keeps its cached pages.
    package func invalidateAttributes(_ node: NodeID) {
        post(.attributes(node))
    }

    /// Whether the kernel may still have attributes or pages of a node that ``invalidateContents(_:range:)`` drops. That may take long:
    /// the kernel blocks the queue while it waits for the answer to a READ of another node.
    package func isInvalidating(_ node: NodeID) -> Bool { unsent.contains(node) }

    /// Whether the kernel may have the size of a node before the last change that ``invalidateContents(_:range:)`` is to tell it of. True
    /// once for each change and thread: the caller makes the kernel ask for the size. It asks in that thread, and another one that has sent
    /// its request may go on before the answer is there. Thread 0 is every thread whose number is unknown: it is true for it each time,
    /// until the invalidation has been sent.
    package func renewsSize(of node: NodeID, for thread: Int32) -> Bool { unsent.renewSize(of: node, for: thread) }

    /// The number of queued notifications, without the one that is being sent.
    package var pendingCount: Int { thread.count }

    /// Returns when all earlier notifications have been sent, or the session has ended. Must not be awaited by code that
    /// answers the kernel, because the kernel may wait for that answer.
    package func drain() async {
        await withCheckedContinuation { continuation in
            let marker = Marker(continuation)
            guard drains.send(marker) else { return continuation.resume() }
            if !thread.send(.marker(marker)) { marker.pass() }
        }
    }

    /// Starts to send. The thread keeps the device open until ``finish()``.
    func start(over connection: Connection) {
        let device = fuseshim_session_descriptor(connection.shim)
        drains.start { $0.resume() }
        // A failure is no reason to send nothing.
        thread.start(preparing: { _ = fuseshim_keep_only(device) }) { [unsent] notification in
            Self.send(notification, to: device)
            unsent.remove(notification)
        }
    }

    func finish() {
        for case .marker(let marker) in thread.finish() { marker.pass() }
        for marker in drains.close() { marker.resume() }
    }

    // MARK: - Private

    private func repeatExpiries() async {
        var isDone = false
        while !isDone {
            try? await Task.sleep(for: Self.repetitionInterval)
            let due = repetitions.withLock { repetitions in
                let due = repetitions.due
                repetitions.due = repetitions.recent
                repetitions.recent = []
                isDone = repetitions.due.isEmpty
                repetitions.isRunning = !isDone
                return due
            }
            for entry in due { post(.expiry(parent: entry.parent, name: entry.name)) }
        }
    }

    private func post(_ notification: Notification) {
        // Before the thread may have sent it.
        unsent.add(notification)
        var isRepeated = false
        let isAccepted = thread.send(notification) { last in
            isRepeated = last == notification
            return isRepeated
        }
        if isRepeated || !isAccepted { unsent.remove(notification) }
    }

    private static func send(_ notification: Notification, to device: Int32) {
        switch notification {
        case .expiry(let parent, let name):
            name.withCString { _ = fuseshim_notify_entry(device, parent.rawValue, $0, $1, true) }
        case .drop(let parent, let name):
            name.withCString { _ = fuseshim_notify_entry(device, parent.rawValue, $0, $1, false) }
        case .deletion(let parent, let child, let name):
            name.withCString { _ = fuseshim_notify_delete(device, parent.rawValue, child.rawValue, $0, $1) }
        case .contents(let node, let offset, let count):
            _ = fuseshim_notify_node(device, node.rawValue, offset, count)
        case .attributes(let node):
            _ = fuseshim_notify_node(device, node.rawValue, -1, 0)
        case .marker(let marker):
            marker.pass()
        }
    }

    /// A marker in the queue for a caller of ``drain()``.
    private final class Marker: Equatable, Sendable {
        private let continuation: CheckedContinuation<Void, Never>
        private let isPassed = Monitor(false)

        init(_ continuation: CheckedContinuation<Void, Never>) { self.continuation = continuation }

        /// Everything before it has been sent.
        func pass() { isPassed.update { $0 = true } }

        /// Waits until it was passed, and resumes the caller.
        func resume() {
            isPassed.wait { $0 ? () : nil }
            continuation.resume()
        }

        static func == (left: Marker, right: Marker) -> Bool { left === right }
    }
}

extension FileName {
    /// Passes the name as a C string, and its length without the terminating zero.
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
