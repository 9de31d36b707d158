import Control
import Foundation
import Synchronization
import Syscalls
import SystemPackage

/// The service manager that has started the daemon: systemd or `yonder-keeper`. It restarts the daemon after a crash
/// and keeps descriptors for the next process. Without one (NOTIFY_SOCKET is not set), all calls do nothing.
///
/// The protocol is that of sd_notify(3), sd_listen_fds(3) and sd_watchdog_enabled(3).
package final class ServiceManager: Sendable {
    private let socket: ServiceSocket?
    /// The time within which the daemon must report that it answers; nil for no limit.
    private let watchdog: Duration?
    private let inherited: Mutex<[InheritedDescriptor]>
    private let parent: Int32
    /// The number of restarts that the keeper counts; 0 under systemd, which does not tell.
    package let restarts: Int

    /// Takes the descriptors that this process has inherited. Must be called once, before the process opens
    /// descriptors of its own.
    ///
    /// - Parameter parent: the process that has started this one.
    package init(environment: [String: String], parent: Int32 = Machine.parentProcess) {
        let process = ProcessInfo.processInfo.processIdentifier
        socket = environment["NOTIFY_SOCKET"].map(ServiceSocket.init(at:))
        self.parent = parent
        restarts = socket == nil ? 0 : environment["YONDER_RESTARTS"].flatMap { Int($0) } ?? 0
        watchdog = Self.watchdog(environment: environment, process: process)
        inherited = Mutex(InheritedDescriptor.take(environment: environment))
    }

    static func watchdog(environment: [String: String], process: Int32) -> Duration? {
        guard let microseconds = environment["WATCHDOG_USEC"].flatMap({ Int64($0) }), microseconds > 0,
            environment["WATCHDOG_PID"].map({ $0 == "\(process)" }) ?? true
        else { return nil }
        return .microseconds(microseconds)
    }

    /// The process that would start the daemon again; nil if there is none, or it has ended.
    package var keeper: Int32? { socket != nil && Machine.parentProcess == parent ? parent : nil }

    /// The warning that the daemon goes on alone, because the process that would start it again has ended; nil otherwise, also for a
    /// daemon that no service manager has started.
    var complaint: String? { socket != nil && keeper == nil ? DaemonStatus.keeperHasEnded : nil }

    // MARK: - Messages

    /// The daemon serves its mounts and commands.
    package func ready(_ status: String) { send(["READY=1", "STATUS=\(status)"]) }

    /// The daemon ends; the watchdog does not apply any more.
    ///
    /// - Parameter isLast: whether no process is to follow it, also if it does not end by itself.
    package func stopping(isLast: Bool) { send(["STOPPING=1"] + (isLast ? ["X_LAST=1"] : [])) }

    /// Reports at half the watchdog's interval that the daemon answers.
    ///
    /// - Parameter proof: returns if the daemon answers; it does not return during a deadlock.
    /// - Returns: the task, to be cancelled when the daemon ends.
    package func reportLife(_ proof: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        Task {
            guard socket != nil, let watchdog else { return }
            while !Task.isCancelled {
                await proof()
                send(["WATCHDOG=1"])
                try? await Task.sleep(for: watchdog / 2)
            }
        }
    }

    // MARK: - Descriptors

    /// Stores a descriptor for the next process. It stays open here.
    ///
    /// The service manager does not watch it (`FDPOLL=0`): every request of the kernel would wake a process that polls `/dev/fuse`.
    /// The next process finds out that a mount has ended.
    ///
    /// - Parameter name: up to 255 printable ASCII characters without a colon.
    /// - Throws: errors of `sendmsg`; ECONNREFUSED when the service manager has ended: its address may be that of another user's process.
    package func store(_ descriptor: FileDescriptor, as name: String) throws(Errno) {
        guard let socket else { return }
        guard keeper != nil else { throw .connectionRefused }
        try socket.send(["FDSTORE=1", "FDNAME=\(name)", "FDPOLL=0"], descriptors: [descriptor])
    }

    package func remove(_ name: String) { send(["FDSTOREREMOVE=1", "FDNAME=\(name)"]) }

    /// Returns when all earlier messages have been handled, or after 5 seconds. Blocks.
    package func waitUntilHandled() { if keeper != nil { _ = try? socket?.waitUntilHandled() } }

    /// The inherited descriptor with a name, which the caller owns from now on.
    package func takeInherited(_ name: String) -> FileDescriptor? {
        inherited.withLock { inherited in
            inherited.firstIndex { $0.name == name }.map { inherited.remove(at: $0).descriptor }
        }
    }

    /// The inherited mounts, which the caller owns from now on. Other descriptors that are still inherited are closed
    /// and not stored any more.
    package func takeInheritedMounts() -> [InheritedMount] {
        let all = inherited.withLock { exchange(&$0, with: []) }
        let (mounts, rest) = InheritedMount.pairs(in: all)
        for other in rest {
            remove(other.name)
            try? other.descriptor.close()
        }
        return mounts
    }

    private func send(_ lines: [String]) {
        // A service manager that has ended receives nothing; the daemon goes on without it.
        try? socket?.send(lines)
    }
}

/// A mount of the daemon's predecessor.
package struct InheritedMount: Hashable, Sendable {
    /// The number under which the mount is stored. It is drawn at random: the kernel gives the number of a device to the next mount
    /// as soon as one is unmounted, before the daemon has removed the stored descriptors of the old mount.
    package var number: UInt32
    /// The kernel's connection, `/dev/fuse`.
    package var device: FileDescriptor
    /// The table of open files.
    package var handles: FileDescriptor
    /// The requests that the keeper has read; nil for none.
    package var missed: FileDescriptor?

    /// The names under which a mount's descriptors are stored.
    package static func names(_ number: UInt32) -> (device: String, handles: String, missed: String) {
        ("device-\(number)", "handles-\(number)", "missed-\(number)")
    }

    package static func remove(_ number: UInt32, from manager: ServiceManager) {
        let names = names(number)
        manager.remove(names.device)
        manager.remove(names.handles)
        manager.remove(names.missed)
    }

    /// The mounts whose device and table are both there exactly once, by number, and all other descriptors.
    static func pairs(in all: [InheritedDescriptor]) -> (mounts: [InheritedMount], rest: [InheritedDescriptor]) {
        let byName = Dictionary(grouping: all, by: \.name).compactMapValues { $0.count == 1 ? $0[0].descriptor : nil }
        let mounts = byName.keys.compactMap { name -> InheritedMount? in
            guard name.hasPrefix("device-"), let number = UInt32(name.dropFirst("device-".count)) else { return nil }
            let names = names(number)
            guard name == names.device, let device = byName[name], let handles = byName[names.handles] else {
                return nil
            }
            return InheritedMount(number: number, device: device, handles: handles, missed: byName[names.missed])
        }
        let taken = Set(mounts.flatMap { [$0.device, $0.handles, $0.missed].compactMap(\.self) })
        return (mounts.sorted { $0.number < $1.number }, all.filter { !taken.contains($0.descriptor) })
    }
}
