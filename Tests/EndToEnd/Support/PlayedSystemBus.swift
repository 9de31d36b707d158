import Foundation
import SystemPackage
import TestSupport

/// A system bus of a test's own, on which NetworkManager is played (Programs/metered/system_bus.py).
struct PlayedSystemBus: Sendable {
    private let address: String
    private let scratch: TemporaryDirectory
    private let program: BackgroundProgram

    /// What is missing to play it; nil if nothing is.
    static let obstacle: String? = {
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
        for program in ["dbus-daemon", "gdbus"]
        where !folders.contains(where: { FileManager.default.isExecutableFile(atPath: $0 + "/" + program) }) {
            return "\(program) is not installed"
        }
        for module in ["dbus", "gi"]
        where !FileManager.default.fileExists(atPath: "/usr/lib/python3/dist-packages/" + module) {
            return "Python's module \(module) is not installed"
        }
        return nil
    }()

    /// Runs a test with such a bus, and ends it whatever the test does.
    ///
    /// - Parameter first: as in ``set(_:)``.
    static func run(_ first: String, _ test: (PlayedSystemBus) async throws -> Void) async throws {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let address = "unix:abstract=yonder-test-\(UUID().uuidString)"
        let script = FilePath(#filePath).removingLastComponent().removingLastComponent()
            .appending("Programs/metered/system_bus.py").string
        let program = try await BackgroundProgram("/usr/bin/python3", script, address, scratch.path.string)
        // The bus goes with the program.
        defer { program.kill() }
        let bus = PlayedSystemBus(address: address, scratch: scratch, program: program)
        try await bus.set(first)
        try await test(bus)
    }

    var environment: [String: String] { ["DBUS_SYSTEM_BUS_ADDRESS": address] }

    /// Changes what there is: `none` is no bus, `bus` one without NetworkManager, and a number is that of its property Metered.
    func set(_ wanted: String) async throws {
        try Data(wanted.utf8).write(to: URL(fileURLWithPath: scratch["wanted"].string), options: .atomic)
        let present = scratch["present"].string
        let isDone = await eventually(within: .seconds(20)) {
            (try? String(contentsOfFile: present, encoding: .utf8)) == wanted || !program.isRunning
        }
        guard isDone, program.isRunning else { throw TestFailure("the bus cannot be made '\(wanted)'") }
    }

    /// As ``set(_:)``, for a number that is not the present one. Waits until a client has read it.
    func setAndAwaitReader(_ wanted: String) async throws {
        try await set(wanted)
        let read = scratch["read"].string
        let isRead = await eventually(within: .seconds(20)) {
            (try? String(contentsOfFile: read, encoding: .utf8)) == wanted
        }
        guard isRead else { throw TestFailure("no client has read '\(wanted)'") }
    }

    /// How many processes of gdbus use the bus.
    var clients: Int {
        let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return processes.count { process in
            let command = try? String(contentsOfFile: "/proc/\(process)/comm", encoding: .utf8)
            guard command == "gdbus\n",
                let environment = try? String(contentsOfFile: "/proc/\(process)/environ", encoding: .utf8)
            else { return false }
            return environment.contains(address)
        }
    }
}
