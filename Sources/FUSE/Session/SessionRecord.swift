import CFUSEShim
import Syscalls
import SystemPackage

/// What a process needs, beside the descriptor of the device, to take over a mount from the process that mounted it.
package struct SessionRecord: Codable, Hashable, Sendable {
    /// Encoded by `FileNameText`.
    package var mountPoint: String
    /// The mount's number in the mount table; nil in the record of an older program.
    var mount: Int64?
    /// The mount's `major:minor`.
    package var device: String
    /// The INIT request that the kernel sent to the first process.
    var initRequest: [UInt8]
    /// The features that were negotiated then. They hold for the life of the mount.
    package var features: ConnectionFeatures

    /// The mount as it is now, elsewhere when a directory above it was renamed; nil when it is gone, or its connection was aborted.
    /// Does not access the mount.
    ///
    /// - Parameter descriptor: the mount's device.
    package func present(_ descriptor: FileDescriptor) -> (path: FilePath, mount: Int64, isCovered: Bool)? {
        // Asked after the table was read: then the numbers in it were still those of this mount.
        guard let table = try? MountTable(), fuseshim_is_connected(descriptor.rawValue),
            let number = mount ?? table.mount(at: FilePath(fileNamed: mountPoint))?.identifier,
            let place = table.place(of: number, device: device)
        else { return nil }
        return (place.path, number, place.isCovered)
    }
}

extension Session {
    /// The record for a successor; nil before the session serves.
    package var record: SessionRecord? {
        let (mountPoint, mount, device, features) = connection.state.read {
            ($0.mountPoint, $0.mount, $0.device, $0.features)
        }
        var request = [UInt8](repeating: 0, count: Int(FUSESHIM_INIT_CAPACITY))
        let length = fuseshim_session_init_request(connection.shim, &request, request.count)
        guard let mountPoint, let device, let features, length > 0 else { return nil }
        return SessionRecord(
            mountPoint: mountPoint.fileNameText, mount: mount, device: device,
            initRequest: Array(request.prefix(length)),
            features: features)
    }

    /// The descriptor of the device, for a process that keeps the mount alive. Valid while the session lives.
    package var device: FileDescriptor { FileDescriptor(rawValue: fuseshim_session_descriptor(connection.shim)) }

    /// Takes over a mount from a process that has ended, instead of ``mount(at:)``. The kernel sends the requests that the process
    /// had received and not answered again once this session serves.
    ///
    /// - Parameters:
    ///   - device: the descriptor that ``device`` was in the other process. The session closes it, also after an error.
    ///   - record: the ``record`` of the other process. This session must have been made with the same options.
    /// - Throws: ENOTCONN when the mount is gone; ENOSYS before Linux 6.9; EINVAL for a record that is not one.
    package func takeOver(_ device: FileDescriptor, of record: SessionRecord) throws(Errno) {
        let present: (path: FilePath, mount: Int64, isCovered: Bool)
        do throws(Errno) {
            guard connection.state.read({ $0.phase == .new }) else { throw .resourceBusy }
            guard let found = record.present(device) else { throw .socketNotConnected }
            present = found
            let failure = fuseshim_session_take_over(
                connection.shim, device.rawValue, record.initRequest, record.initRequest.count)
            guard failure == 0 else { throw Errno(rawValue: failure) }
        } catch {
            try? device.close()
            throw error
        }
        connection.state.update { state in
            state.phase = .mounted
            state.mountPoint = present.path
            state.mount = present.mount
            state.device = record.device
            state.predecessor = record.features
        }
    }
}
