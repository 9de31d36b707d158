import CSyscalls
import Glibc
import Testing

@testable import Keeper

@Suite struct NotifyMessages {
    private func message(_ text: String) -> NotifyMessage? { NotifyMessage(Array(text.utf8)) }

    @Test func readsWhatSystemdDefines() throws {
        let ready = try #require(message("READY=1\nSTATUS=two\u{1B} mounts\nX_OTHER=1\nMAINPID=1"))
        #expect(ready.isReady && !ready.isStopping && ready.watchdog == nil)
        #expect(ready.status == "two? mounts")
        let stored = try #require(message("FDSTORE=1\nFDNAME=device-3\nFDPOLL=0"))
        #expect(stored.storesDescriptors && stored.name == "device-3")
        #expect(message("FDSTOREREMOVE=1\nFDNAME=a")?.removesDescriptors == true)
        #expect(message("WATCHDOG=1")?.watchdog == .alive)
        #expect(message("WATCHDOG=trigger\nWATCHDOG=1")?.watchdog == .failed)
        #expect(message("STOPPING=1\n")?.isStopping == true)
    }

    @Test func ignoresWhatItDoesNotKnow() {
        let nothing = message("")
        #expect(nothing != nil)
        for text in ["READY=0", "READY", "=1", "\n\n", "READY =1", "ready=1", "BARRIER=1", "MAINPID=1"] {
            #expect(message(text) == nothing, "\(text)")
        }
    }

    @Test func refusesBrokenMessages() {
        #expect(message("READY=1\0") == nil)
        #expect(message("FDSTORE=1\nFDNAME=") == nil)
        #expect(message("FDNAME=a:b") == nil)
        #expect(message("FDNAME=\u{7}") == nil)
        #expect(message("FDNAME=ä") == nil)
        #expect(message("FDNAME=" + String(repeating: "a", count: 255))?.name?.count == 255)
        #expect(message("FDNAME=" + String(repeating: "a", count: 256)) == nil)
        #expect(message(String(repeating: "a", count: NotifyMessage.longest + 1)) == nil)
    }

    @Test func survivesAnyBytes() {
        var generator = SystemRandomNumberGenerator()
        let words = ["FDSTORE", "FDNAME", "=", "1", "\n", "WATCHDOG", "trigger", "STATUS", "\u{FF}"].map {
            Array($0.utf8)
        }
        for _ in 0..<2000 {
            let bytes = (0..<Int.random(in: 0...40)).flatMap { _ in
                Bool.random() ? words.randomElement() ?? [] : [UInt8.random(in: 0...255, using: &generator)]
            }
            if let name = NotifyMessage(bytes)?.name { #expect(NotifyMessage.isValid(name: name.utf8)) }
        }
    }
}

@Suite struct NotifySockets {
    @Test("messages of other processes do not keep the receiver, however many come") func strangers() throws {
        var address = [CChar](repeating: 0, count: 108)
        let socket = yonder_notify_open(&address, address.count)
        try #require(socket >= 0)
        defer { close(socket) }
        func receive(from sender: Int32, strangers: Int32) -> String? {
            var text = [UInt8](repeating: 0, count: 64)
            var descriptors = [Int32](repeating: -1, count: Int(YONDER_MESSAGE_DESCRIPTORS))
            var count: Int32 = 0
            let length = yonder_notify_receive(
                socket, sender, strangers, &text, text.count, &descriptors, &count)
            return length < 0 ? nil : String(decoding: text.prefix(length), as: UTF8.self)
        }
        for message in ["1", "2", "3", "4", "5"] {
            #expect(yonder_notify_send(address, message, message.utf8.count, nil, 0) == 0)
        }
        // This process is a stranger to one that receives from its parent.
        #expect(receive(from: getppid(), strangers: 3) == nil)
        #expect(receive(from: getpid(), strangers: 3) == "4")
        #expect(receive(from: getppid(), strangers: 3) == nil)
        #expect(receive(from: getpid(), strangers: 3) == nil)
    }
}

@Suite struct DescriptorStores {
    private func descriptor() -> Int32 { open("/dev/null", O_RDONLY | O_CLOEXEC) }
    private func isOpen(_ descriptor: Int32) -> Bool { fcntl(descriptor, F_GETFD) >= 0 }

    @Test func hasALimit() {
        var store = DescriptorStore(limit: 2)
        let all = (0..<3).map { _ in descriptor() }
        #expect(all.map { store.store($0, as: "a") } == [true, true, false])
        #expect(store.entries.map(\.descriptor) == Array(all.prefix(2)) && !isOpen(all[2]))
        store.closeAll()
    }

    @Test func removesByName() {
        var store = DescriptorStore()
        let all = (0..<4).map { _ in descriptor() }
        for (name, descriptor) in zip(["a", "b", "b", "c"], all) { _ = store.store(descriptor, as: name) }
        store.remove("b")
        #expect(store.entries.map(\.name) == ["a", "c"] && !isOpen(all[1]) && !isOpen(all[2]))
        store.closeAll()
        #expect(store.entries.isEmpty && !isOpen(all[3]))
    }
}

@Suite struct RestartSchedules {
    @Test func pausesGrowWhileCrashesComeEarly() {
        var schedule = RestartSchedule()
        // Twenty seconds lie between the crashes, so that there are never five within a minute.
        let pauses = (0..<8).map { schedule.pause(afterCrashAt: $0 * 20_000, readySince: nil) }
        #expect(pauses == [0, 100, 200, 500, 1000, 2000, 5000, 5000])
        #expect(!schedule.isLooping)
        #expect(schedule.pause(afterCrashAt: 170_000, readySince: 169_000) == 0)
        #expect(schedule.pause(afterCrashAt: 171_000, readySince: 170_999) == 0)
        #expect(schedule.pause(afterCrashAt: 172_000, readySince: 171_001) == 100)
    }

    @Test func afterFiveWithinAMinuteEachPauseIsTheLongest() {
        var schedule = RestartSchedule()
        let pauses = (0..<6).map { schedule.pause(afterCrashAt: $0 * 1000, readySince: nil) }
        #expect(pauses == [0, 100, 200, 500, 5000, 5000])
        #expect(schedule.isLooping)
        #expect(schedule.pause(afterCrashAt: 20_000, readySince: 10_000) == 0)
        #expect(!schedule.isLooping)
    }

    @Test func aWorkerThatRunsIsStartedAtOnceHoweverOftenItIsKilled() {
        var schedule = RestartSchedule()
        for kill in 1...60 { #expect(schedule.pause(afterCrashAt: kill * 1000, readySince: kill * 1000 - 1000) == 0) }
    }

    @Test("TAKEOVER-8: a worker that is killed, however often and early, has not crashed") func kills() {
        var schedule = RestartSchedule()
        for kill in 1...60 {
            #expect(schedule.pause(afterKillAt: kill * 200, readySince: kill * 200 - 150) == 100)
            #expect(schedule.pause(afterKillAt: kill * 200, readySince: nil) == 100)
        }
        #expect(schedule.pause(afterKillAt: 20_000, readySince: 19_000) == 0)
        #expect(!schedule.isLooping)
        #expect(schedule.pause(afterCrashAt: 20_100, readySince: nil) == 0)
    }

    @Test func theLongestPauseCanBeSet() {
        var schedule = RestartSchedule(longest: 100)
        #expect((0..<6).map { schedule.pause(afterCrashAt: $0, readySince: nil) } == [0, 100, 100, 100, 100, 100])
    }
}

@Suite struct KeeperOptions {
    @Test func readsTheCommandLine() throws {
        let options = try #require(
            Options(["--background", "--watchdog", "0.5", "--longest-pause", "2", "--", "/bin/x", "--", "a"]))
        #expect(options.isInBackground && options.watchdog == 500 && options.longestPause == 2000)
        #expect(options.worker == ["/bin/x", "--", "a"])
        #expect(Options(["--", "/x"])?.watchdog == 60_000)
    }

    @Test(
        arguments: [
            [], ["--"], ["/x"], ["--", "x"], ["--other", "--", "/x"], ["--watchdog", "--", "/x"],
            ["--watchdog", "-1", "--", "/x"], ["--watchdog", "nan", "--", "/x"],
        ])
    func refusesWrongUsage(_ arguments: [String]) {
        #expect(Options(arguments) == nil)
    }
}

@Suite struct ProcessEnds {
    @Test func readsWaitStatus() {
        #expect(ProcessEnd(waitStatus: 0) == .exit(0))
        #expect(ProcessEnd(waitStatus: 133 << 8) == .exit(133))
        #expect(ProcessEnd(waitStatus: 9).exitStatus == 137)
        // With a core dump.
        #expect(ProcessEnd(waitStatus: 6 | 0x80) == .signal(6))
    }
}

@Suite struct KernelRequests {
    /// A request as the kernel writes it.
    private func request(_ operation: UInt64, number: UInt64 = 7, _ body: [UInt8] = []) -> KernelRequest? {
        let header =
            [UInt8](word: UInt64(40 + body.count), length: 4) + [UInt8](word: operation, length: 4)
            + [UInt8](word: number) + [UInt8](word: 99) + [UInt8](repeating: 0, count: 16)
        return KernelRequest((header + body)[...])
    }

    @Test func answersWithEIO() throws {
        let lookup = try #require(request(1))
        #expect(lookup.response == [16, 0, 0, 0, 0xFB, 0xFF, 0xFF, 0xFF, 7, 0, 0, 0, 0, 0, 0, 0])
        #expect(lookup.missed.isEmpty)
        #expect(request(16, [UInt8](repeating: 0, count: 40))?.answer == .ioError)
        #expect(request(25)?.answer == .success)
    }

    @Test func leavesToTheNextWorkerWhatItMayHaveDoneOrWouldLose() {
        #expect(request(1, number: 1 << 63 | 7)?.answer == KernelRequest.Answer.none)
        #expect(request(18, number: 1 << 63 | 7, [UInt8](repeating: 0, count: 24))?.missed == [])
        // A WRITE of a page of a mapping.
        let body = [UInt8](repeating: 0, count: 20) + [1] + [UInt8](repeating: 0, count: 19)
        #expect(request(16, body)?.answer == KernelRequest.Answer.none)
    }

    @Test func notesWhatHasToBeCounted() {
        let release = request(18, [UInt8](word: 5) + [UInt8](word: 2, length: 4) + [UInt8](word: 0, length: 12))
        #expect(release?.answer == .success && release?.missed == [[18, 99, 2, 7]])
        let forget = request(2, [UInt8](word: 3))
        #expect(forget?.response == nil && forget?.missed == [[2, 99, 3, 7]])
        let batch = [UInt8](word: 2) + [4, 1, 5, 2].flatMap { [UInt8](word: $0) }
        #expect(request(42, batch)?.missed == [[2, 4, 1, 7], [2, 5, 2, 7]])
        // A count beyond the bytes.
        #expect(request(42, [UInt8](word: 9) + [UInt8](word: 4) + [UInt8](word: 1))?.missed == [[2, 4, 1, 7]])
        #expect(request(42)?.missed == [] && KernelRequest([1, 2, 3]) == nil)
    }
}

@Suite struct RequestRefusals {
    @Test("TAKEOVER-8: a device that cannot be answered does not keep the requests of others waiting")
    func brokenDevice() throws {
        let missed = try #require(RequestRefusal.makeMissed())
        var (broken, whole): ([Int32], [Int32]) = ([-1, -1], [-1, -1])
        let kind = Int32(SOCK_SEQPACKET.rawValue)
        let made = [socketpair(AF_UNIX, kind, 0, &broken), socketpair(AF_UNIX, kind, 0, &whole)]
        try #require(made == [0, 0])
        defer { for descriptor in broken + whole + [missed] { close(descriptor) } }
        var refusal = RequestRefusal()

        let garbage: [UInt8] = [1, 2, 3]
        #expect(write(broken[1], garbage, garbage.count) == 3)
        let isAnswered = refusal.answer(broken[0], missed: missed)
        #expect(!isAnswered)
        refusal.giveUp(broken[0])
        #expect(!refusal.answers(broken[0]) && refusal.answers(whole[0]))

        // GETATTR
        let request =
            [UInt8](word: 40, length: 4) + [UInt8](word: 3, length: 4) + [UInt8](word: 7)
            + [UInt8](repeating: 0, count: 24)
        #expect(write(whole[1], request, request.count) == 40)
        let others = refusal.answer(whole[0], missed: missed)
        #expect(others)
        var response = [UInt8](repeating: 0, count: 64)
        let length = read(whole[1], &response, 64)
        #expect(length == 16)
        #expect(Array(response.prefix(16)) == [16, 0, 0, 0, 0xFB, 0xFF, 0xFF, 0xFF, 7, 0, 0, 0, 0, 0, 0, 0])
    }
}
