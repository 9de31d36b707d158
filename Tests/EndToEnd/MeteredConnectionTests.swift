import FileProvider
import Logging
import Sync
import Synchronization
import TestSupport
import Testing

@testable import Daemon

@Suite struct MeteredProperties {
    @Test(
        "LIMIT-6: yes and a guess of yes are metered",
        arguments: [(0, false), (1, true), (2, false), (3, true), (4, false), (5, false)])
    func values(_ value: Int, isMetered: Bool) {
        #expect(NetworkManager.isMetered(in: "(<uint32 \(value)>,)\n") == isMetered)
    }

    @Test(
        "another text is not understood",
        arguments: [
            "", "1", "(<1>,)", "(<uint32 >,)", "(<uint32 one>,)", "(<'uint32 1'>,)", "(<uint32 1>, 2)",
            "(<uint32 -1>,)", "(<uint32 4294967296>,)",
            "Error: GDBus.Error:org.freedesktop.DBus.Error.ServiceUnknown: no such name",
        ])
    func others(_ text: String) {
        #expect(NetworkManager.isMetered(in: text) == nil)
    }
}

@Suite struct NetworkManagerTests {
    @Test("LIMIT-6: what keeps NetworkManager from answering is told") func complaint() async {
        let manager = NetworkManager(
            environment: ["PATH": "/nonexistent", "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/nonexistent"],
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
        #expect(manager.complaint == nil)
        let following = Task { await manager.follow { _ in } }
        #expect(
            await eventually(within: .seconds(20)) {
                manager.complaint?.contains("'--metered pause' has no effect: ") == true
            })
        following.cancel()
        await following.value
    }
}

@Suite struct PauseReasonsTests {
    private func reasons(isPausedByUser: Bool = false, isMetered: Bool = true) -> PauseReasons {
        var reasons = PauseReasons(isPausedByUser: isPausedByUser, avoidsMeteredConnection: true)
        reasons.isMetered = isMetered
        return reasons
    }

    @Test("LIMIT-6: the user's pause is told first, and stays when the connection is not metered any more") func user()
    {
        var reasons = reasons(isPausedByUser: true)
        #expect(reasons.pause == .user)
        reasons.isMetered = false
        #expect(reasons.pause == .user)
        reasons.resume()
        #expect(reasons.pause == nil)
    }

    @Test("LIMIT-6: resuming counts until the connection is not metered any more") func resume() {
        var reasons = reasons()
        #expect(reasons.pause == .metered)
        reasons.resume()
        #expect(reasons.pause == nil)
        // The same is reported again.
        reasons.isMetered = true
        #expect(reasons.pause == nil)
        reasons.isMetered = false
        reasons.isMetered = true
        #expect(reasons.pause == .metered)
    }

    @Test("LIMIT-6: resuming on another connection says nothing of a metered one") func resumeBefore() {
        var reasons = reasons(isMetered: false)
        reasons.resume()
        reasons.isMetered = true
        #expect(reasons.pause == .metered)
    }

    @Test("LIMIT-6: a domain that goes on is not paused, and what it knew is forgotten") func option() {
        var reasons = reasons()
        reasons.resume()
        reasons.avoidsMeteredConnection = false
        #expect(reasons.pause == nil && !reasons.isMetered)
        reasons.avoidsMeteredConnection = true
        reasons.isMetered = true
        #expect(reasons.pause == .metered)
    }
}

@Suite struct MeteredConnections {
    /// Reports what a test wants, and counts how often it is begun and ended.
    private final class Line: Sendable {
        private struct State {
            var report: (@Sendable (Bool) -> Void)?
            var begun = 0
            var ended = 0
        }

        private let state = Mutex(State())
        private let never = ChangeSignal()
        var begun: Int { state.withLock { $0.begun } }
        var ended: Int { state.withLock { $0.ended } }

        func report(_ isMetered: Bool) {
            let report = state.withLock { $0.report }
            report?(isMetered)
        }

        func watch(_ report: @escaping @Sendable (Bool) -> Void) async {
            state.withLock { state in
                state.report = report
                state.begun += 1
            }
            _ = try? await never.wait(after: never.count)
            state.withLock { $0.ended += 1 }
        }
    }

    @Test("LIMIT-6: the connection is looked at while a domain asks, by one watch for all") func users() async {
        let line = Line()
        let connection = MeteredConnection { await line.watch($0) }
        #expect(line.begun == 0)
        connection.join()
        connection.join()
        #expect(await eventually { line.begun == 1 })
        line.report(true)
        #expect(await connection.answer())
        connection.leave()
        #expect(connection.isMetered && line.ended == 0)
        connection.leave()
        #expect(await eventually { line.ended == 1 })
        // What comes late is of no use to the next who asks.
        line.report(true)
        #expect(!connection.isMetered && line.begun == 1)
        connection.join()
        #expect(await eventually { line.begun == 2 })
        #expect(!connection.isMetered)
        connection.leave()
    }

    @Test("LIMIT-6: what does not answer in time holds nothing up, and each later answer is reported") func late() async
    {
        let line = Line()
        let connection = MeteredConnection { await line.watch($0) }
        connection.join()
        #expect(await connection.answer() == false)
        let answers = Mutex<[Bool]>([])
        let following = Task {
            await connection.follow { isMetered in answers.withLock { $0.append(isMetered) } }
        }
        for (count, answer) in [(1, true), (2, false), (3, true)] {
            line.report(answer)
            #expect(await eventually { answers.withLock { $0.count } == count })
        }
        #expect(answers.withLock { $0 } == [true, false, true])
        following.cancel()
        await following.value
        connection.leave()
    }
}
