import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import Daemon
@testable import Syscalls

/// The worker's side of the notify protocol.
@Suite struct ServiceManagers {
    @Test("descriptors are taken only if LISTEN_PID is this process, and only as many as are named")
    func inheritedNames() {
        func names(_ environment: [String: String]) -> [String] {
            InheritedDescriptor.names(environment: environment, process: 7)
        }
        let given = ["LISTEN_PID": "7", "LISTEN_FDS": "3", "LISTEN_FDNAMES": "control:device-1:handles-1"]
        #expect(names(given) == ["control", "device-1", "handles-1"])
        #expect(names(given.merging(["LISTEN_PID": "8"]) { $1 }).isEmpty)
        #expect(names(given.merging(["LISTEN_FDNAMES": "a"]) { $1 }) == ["a", "unknown", "unknown"])
        #expect(names(["LISTEN_PID": "7", "LISTEN_FDS": "1"]) == ["unknown"])
        for count in ["0", "-1", "x", "", "99999999999999999999", "1000000"] {
            #expect(names(["LISTEN_PID": "7", "LISTEN_FDS": count]).isEmpty, "\(count)")
        }
        #expect(names([:]).isEmpty)
    }

    @Test("a mount is inherited with both of its descriptors or not at all") func inheritedMounts() {
        func inherited(_ names: [String]) -> ([InheritedMount], [String]) {
            let all = names.enumerated().map {
                InheritedDescriptor(name: $1, descriptor: FileDescriptor(rawValue: Int32(100 + $0)))
            }
            let (mounts, rest) = InheritedMount.pairs(in: all)
            return (mounts, rest.map(\.name))
        }
        let (mounts, rest) = inherited([
            "handles-12", "device-12", "device-3", "handles-4", "device-5", "handles-5", "device-5", "device-07",
            "handles-07", "device--1", "control",
        ])
        #expect(
            mounts == [
                InheritedMount(
                    number: 12, device: FileDescriptor(rawValue: 101), handles: FileDescriptor(rawValue: 100))
            ])
        #expect(rest.count == 9)
    }

    @Test("the watchdog counts if it is meant for this process") func watchdog() {
        func time(_ environment: [String: String]) -> Duration? {
            ServiceManager.watchdog(environment: environment, process: 7)
        }
        #expect(time(["WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "7"]) == .seconds(2))
        #expect(time(["WATCHDOG_USEC": "2000000"]) == .seconds(2))
        #expect(time(["WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "8"]) == nil)
        for text in ["0", "-1", "x", ""] { #expect(time(["WATCHDOG_USEC": text]) == nil) }
        #expect(time([:]) == nil)
    }

    @Test(
        "without NOTIFY_SOCKET, and with a service manager that has ended, nothing happens",
        arguments: [nil, "@gone", "gone", ""])
    func withoutManager(_ address: String?) throws {
        let manager = ServiceManager(environment: address.map { ["NOTIFY_SOCKET": $0] } ?? [:])
        manager.ready("ready")
        manager.remove("control")
        manager.waitUntilHandled()
        manager.stopping(isLast: true)
        #expect(manager.takeInherited("control") == nil && manager.takeInheritedMounts().isEmpty)
        #expect((manager.keeper == nil) == (address == nil))
        #expect(manager.restarts == 0)
    }

    @Test("messages and descriptors arrive; a barrier waits until they are handled") func sends() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let path = directory["notify"].string
        let receiver = try await Self.receive(at: path)
        defer { receiver.kill() }
        let manager = ServiceManager(environment: ["NOTIFY_SOCKET": path])
        try manager.store(FileDescriptor(rawValue: 0), as: "control")
        manager.ready("two mounts")
        manager.waitUntilHandled()
        #expect(
            try String(contentsOfFile: path + ".log", encoding: .utf8)
                == "FDSTORE=1 FDNAME=control FDPOLL=0 1\nREADY=1 STATUS=two mounts 0\nBARRIER=1 1\n")
    }

    @Test("no descriptor is sent when the service manager has ended: another process may have got its address")
    func endedManager() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let path = directory["notify"].string
        let receiver = try await Self.receive(at: path)
        defer { receiver.kill() }
        let manager = ServiceManager(environment: ["NOTIFY_SOCKET": path], parent: -1)
        #expect(throws: Errno.connectionRefused) { try manager.store(FileDescriptor(rawValue: 0), as: "control") }
        manager.waitUntilHandled()
        manager.ready("alone")
        let isAlone = await eventually {
            (try? String(contentsOfFile: path + ".log", encoding: .utf8)) == "READY=1 STATUS=alone 0\n"
        }
        #expect(isAlone)
    }

    /// Starts a service manager that writes what it receives to the file `PATH.log`, a line for each message: the text, and the number
    /// of descriptors.
    fileprivate static func receive(at path: String) async throws -> BackgroundProgram {
        let program = """
            import array, os, socket, sys
            s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.bind(sys.argv[1] + '.new')
            os.rename(sys.argv[1] + '.new', sys.argv[1])
            while True:
                data, control, _, _ = s.recvmsg(4096, 1024)
                numbers = array.array('i', control[0][2]) if control else []
                with open(sys.argv[1] + '.log', 'a') as log:
                    log.write(data.decode().replace('\\n', ' ') + ' %d\\n' % len(numbers))
                for number in numbers: os.close(number)
            """
        let receiver = try await BackgroundProgram("python3", "-c", program, path)
        #expect(await eventually { FileManager.default.fileExists(atPath: path) })
        return receiver
    }
}

extension RealMount {
    @Suite struct StoredMounts {
        @Test("what is removed of a mount that has ended is not what the next one has stored") func removesItsOwn()
            async throws
        {
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            let path = directory["notify"].string
            let receiver = try await ServiceManagers.receive(at: path)
            defer { receiver.kill() }
            let manager = ServiceManager(environment: ["NOTIFY_SOCKET": path])
            try await ProvidedMount.run { _ in
            } _: { first async throws in
                first.host.store(in: manager)
                #expect(try await Command.run("umount", first.path.string).status == 0)
                await first.host.waitUntilUnmounted()
                // The kernel gives it the number of the first one's device, if no other process was faster.
                try await ProvidedMount.run { _ in
                } _: { second async throws in
                    second.host.store(in: manager)
                    first.host.remove(from: manager)
                    manager.waitUntilHandled()
                }
            }
            let messages = try String(contentsOfFile: path + ".log", encoding: .utf8).split(separator: "\n")
            func names(_ kind: String) -> [Substring] {
                messages.filter { $0.hasPrefix(kind) }.compactMap { $0.split(separator: " ").dropFirst().first }
            }
            let stored = names("FDSTORE=1")
            #expect(stored.count == 4)
            let removed = Set(names("FDSTOREREMOVE=1"))
            #expect(removed.isSuperset(of: stored.prefix(2)) && removed.isDisjoint(with: stored.suffix(2)))
        }
    }
}
