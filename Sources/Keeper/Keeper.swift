import CSyscalls
import Glibc

/// Holds the descriptors of the daemon and starts its process, the worker, again when it dies. Speaks the service
/// manager's side of systemd's notify protocol, so that the worker has one code path for both.
///
/// One thread, no database, no network; a message of the worker is data that is verified.
package struct Keeper: ~Copyable {
    private let options: Options
    /// Nil for a keeper that no service manager has started.
    private var manager: ServiceManager?
    private let signals: Int32
    private let socket: Int32
    private var store: DescriptorStore
    private var schedule: RestartSchedule
    private var worker: Worker?
    /// Killed workers of which a thread is left: it waits in the kernel for a page of its own mount, which only the next worker's
    /// answer can unlock (`fuse_reverse_inval_inode`, fs/fuse/inode.c). No signal ends it before.
    private var lingering: [Int32] = []
    /// While workers crash in a loop.
    private var refusal: RequestRefusal?
    private let crashReport: CrashReport
    /// The time of the next start in milliseconds, while no worker runs.
    private var nextStart: Int?
    private var restarts = 0
    private var wasReady = false
    private var isEnding = false
    /// Whether the service manager starts the next keeper at once, which takes the mounts over.
    private var isHandingOver = false

    /// The time that a worker has to end after SIGABRT, in milliseconds: it writes its backtrace.
    private static let patienceAfterAbort = 30_000
    /// How often the keeper looks whether only a worker's main thread has ended: no signal tells that. In milliseconds.
    private static let lookInterval = 1_000
    /// How often it looks which threads are left of such a worker.
    private static let lookAgain = 50
    /// The time that the other threads of a worker have to end, in milliseconds: of one that was killed, and of one that has
    /// announced its end, whose exit status counts, or of which a thread may be held up by the disk. No longer: a thread may also
    /// wait for an answer of the next worker (Docs/decisions/0009-takeover.md).
    private static let (patienceAfterKill, patienceAfterExit) = (200, 10_000)
    /// How many messages of other processes are discarded at a time: any process of this machine can send to the abstract name. More
    /// than the queue holds (`net.unix.max_dgram_qlen`: 10, with systemd 512), so that the last messages of a worker are found behind them.
    private static let mostStrangers: Int32 = 1000

    /// Takes the descriptors that this process has inherited: those of a keeper before it, and the socket that a unit listens on.
    /// Must be called before the process opens descriptors of its own. Sets variables of this process, which the workers inherit.
    ///
    /// - Returns: nil if the kernel refuses a socket.
    package init?(_ options: Options) {
        manager = ServiceManager()
        store = DescriptorStore(inherited: ServiceManager.takeInherited(), manager: manager)
        yonder_raise_file_limit()
        signals = yonder_signals_open()
        var address = [CChar](repeating: 0, count: 108)
        socket = yonder_notify_open(&address, address.count)
        guard signals >= 0, socket >= 0 else { return nil }
        // What a worker leaves behind is ended before the next one starts.
        _ = yonder_adopt_orphans()
        setenv("NOTIFY_SOCKET", address, 1)
        self.options = options
        crashReport = CrashReport(path: options.crashReport)
        schedule = RestartSchedule(longest: options.longestPause)
    }

    deinit {
        close(signals)
        close(socket)
    }

    /// Runs workers until one ends orderly, or a signal has ended it: SIGTERM and SIGINT unmount; SIGUSR1 leaves the mounts to the
    /// next keeper of the service manager.
    ///
    /// - Returns: the exit status of the last worker.
    package mutating func run() -> Int32 {
        startWorker()
        while true {
            wait()
            handleSignals()
            // Before the end of the worker is handled: its last messages count.
            receiveMessages()
            if let status = reap() { return end(status) }
            guard let nextStart else {
                checkWatchdog()
                continue
            }
            if isEnding { return end(0) }
            if Clock.now >= nextStart {
                restarts += 1
                startWorker()
            }
        }
    }

    private mutating func end(_ status: Int32) -> Int32 {
        store.closeAll()
        crashReport.remove()
        return isHandingOver ? 0 : status
    }

    // MARK: - The worker

    private mutating func startWorker() {
        nextStart = nil
        refusal = nil
        setenv("YONDER_RESTARTS", "\(restarts)", 1)
        worker = Worker.start(options.worker, descriptors: store.entries, watchdog: options.watchdog)
        if worker == nil {
            Log.write("'\(options.worker[0])' cannot be started: error \(errno)")
            nextStart = Clock.now + max(100, schedule.pause(afterCrashAt: Clock.now, readySince: nil))
        }
    }

    /// Notices the end of the worker, and handles it. Lingering workers and what they have left behind are reaped, too.
    ///
    /// - Returns: the exit status of the keeper if it ends, too.
    private mutating func reap() -> Int32? {
        var status: Int32 = 0
        while case let ended = waitpid(-1, &status, WNOHANG), ended > 0 {
            lingering.removeAll { $0 == ended }
            guard let worker, worker.process == ended else { continue }
            return handleEnd(of: worker, ProcessEnd(waitStatus: status))
        }
        guard let worker, isLingering(worker) else { return nil }
        lingering.append(worker.process)
        Log.write(
            "a thread of the worker \(worker.process) waits in the kernel, for an answer of the next worker or the disk"
        )
        return handleEnd(of: worker, .signal(SIGKILL))
    }

    /// Whether nothing but a thread that no signal ends is left of a worker.
    private mutating func isLingering(_ worker: Worker) -> Bool {
        if let since = worker.mainThreadEndedAt {
            let waited = Clock.now - since
            return waited >= Self.patience(with: worker)
                && (worker.isHeldUpByItsMount || waited >= Self.patienceAfterExit)
        }
        if worker.hasEndedMainThread {
            if !worker.isStopping { kill(worker.process, SIGKILL) }
            self.worker?.mainThreadEndedAt = Clock.now
        }
        return false
    }

    private static func patience(with worker: Worker) -> Int {
        worker.isStopping ? patienceAfterExit : patienceAfterKill
    }

    private mutating func handleEnd(of worker: Worker, _ end: ProcessEnd) -> Int32? {
        self.worker = nil
        // A request that a program of the worker is busy with must not reach the remote after those of the next worker. The processes that a
        // lingering worker has started are still its children.
        let parents = [getpid()] + (lingering.contains(worker.process) ? [worker.process] : [])
        let killed = parents.reduce(0) { $0 + max(0, yonder_kill_groups_of_children($1)) }
        if killed > 0 { Log.write("\(killed) programs that the worker had started are killed") }
        let now = Clock.now
        switch end {
        case _ where isEnding: return end.exitStatus
        case .exit(0): return 0
        // It was told to end. A service manager that got another status would start the next one.
        case _ where worker.isLast:
            Log.write("the worker \(worker.process) has ended with \(end) while it shut down")
            return 0
        case .exit(let status) where !wasReady: return status
        case .exit(Worker.restartStatus) where worker.readySince != nil:
            Log.write("the worker \(worker.process) asks to be started again")
            nextStart = now
            return nil
        default: break
        }
        // A worker that does not end after its watchdog is killed here.
        let wasKilled = end == .signal(SIGKILL) && worker.abortedAt == nil
        let pause =
            wasKilled
            ? schedule.pause(afterKillAt: now, readySince: worker.readySince)
            : schedule.pause(afterCrashAt: now, readySince: worker.readySince)
        nextStart = now + pause
        if schedule.isLooping, !wasKilled {
            refusal = RequestRefusal()
            crashReport.write(crashes: schedule.streak, end: end.description, pause: pause)
        }
        Log.write(
            "the worker \(worker.process) has ended with \(end), and is started again "
                + (pause == 0 ? "at once" : "in \(pause) ms")
                + (schedule.isLooping && !wasKilled ? "; it has crashed five times within a minute" : "")
                + (refusal != nil ? ", and calls on its mounts fail with EIO" : ""))
        return nil
    }

    /// Ends a worker that has missed its watchdog: with SIGABRT, which leaves a backtrace, then with SIGKILL.
    private mutating func checkWatchdog() {
        guard var worker else { return }
        let now = Clock.now
        if let abortedAt = worker.abortedAt {
            guard now >= abortedAt + Self.patienceAfterAbort, !worker.wasKilled else { return }
            kill(worker.process, SIGKILL)
            worker.wasKilled = true
        } else if options.watchdog > 0, !worker.isStopping, let last = worker.lastSignOfLife,
            now >= last + options.watchdog
        {
            Log.write("the worker \(worker.process) has given no sign of life for \(now - last) ms, and is ended")
            abort(&worker)
        }
        self.worker = worker
    }

    private func abort(_ worker: inout Worker) {
        kill(worker.process, SIGABRT)
        // A stopped process handles no signal but SIGKILL.
        kill(worker.process, SIGCONT)
        worker.abortedAt = Clock.now
    }

    // MARK: - Events

    /// Waits for a signal, a message, or the next time at which something is due.
    private mutating func wait() {
        var due: Int?
        if let nextStart { due = nextStart }
        if let worker {
            if let abortedAt = worker.abortedAt {
                if !worker.wasKilled { due = abortedAt + Self.patienceAfterAbort }
            } else if options.watchdog > 0, !worker.isStopping, let last = worker.lastSignOfLife {
                due = last + options.watchdog
            }
            let look =
                worker.mainThreadEndedAt.map { max($0 + Self.patience(with: worker), Clock.now + Self.lookAgain) }
                ?? Clock.now + Self.lookInterval
            due = min(due ?? look, look)
        }
        if let next = manager?.reportLife(at: Clock.now) { due = min(due ?? next, next) }
        let refused = store.entries.filter { isRefused($0) }
        var polled = [
            pollfd(fd: signals, events: Int16(POLLIN), revents: 0),
            pollfd(fd: socket, events: Int16(POLLIN), revents: 0),
        ]
        polled += refused.map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
        let timeout = due.map { Int32(clamping: max(0, $0 - Clock.now)) } ?? -1
        guard poll(&polled, nfds_t(polled.count), timeout) > 0 else { return }
        for (entry, state) in zip(refused, polled.dropFirst(2)) where state.revents != 0 {
            // POLLERR: the mount has ended.
            if Int32(state.revents) == POLLIN { refuse(entry) } else { store.remove(entry.name) }
        }
    }

    /// Whether the keeper answers the requests of a device.
    private func isRefused(_ entry: StoredDescriptor) -> Bool {
        worker == nil && entry.name.hasPrefix("device-") && refusal?.answers(entry.descriptor) == true
    }

    /// Answers the requests of a device, and notes what the next worker has to count in the file `missed-N`.
    private mutating func refuse(_ device: StoredDescriptor) {
        let name = "missed-" + device.name.dropFirst("device-".count)
        var missed = store.entries.first { $0.name == name }?.descriptor
        if missed == nil, let made = RequestRefusal.makeMissed(), store.store(made, as: name) {
            missed = made
        }
        if let missed, refusal?.answer(device.descriptor, missed: missed) == true { return }
        Log.write(
            "the requests of '\(device.name)' wait for the next worker, because they cannot be answered: error \(errno)"
        )
        refusal?.giveUp(device.descriptor)
    }

    private mutating func handleSignals() {
        while true {
            switch yonder_signals_next(signals) {
            case 0: return
            case let number where number == SIGTERM || number == SIGINT:
                isEnding = true
                if let worker { kill(worker.process, number) }
            case SIGUSR1 where manager != nil:
                (isEnding, isHandingOver) = (true, true)
                if let worker { kill(worker.process, SIGUSR1) }
            default: break
            }
        }
    }

    private mutating func receiveMessages() {
        guard let worker else { return }
        var text = [UInt8](repeating: 0, count: NotifyMessage.longest)
        var descriptors = [Int32](repeating: -1, count: Int(YONDER_MESSAGE_DESCRIPTORS))
        // A worker that sends without end must not keep its own end from being handled.
        for _ in 0..<1000 {
            var count: Int32 = 0
            let length = yonder_notify_receive(
                socket, worker.process, Self.mostStrangers, &text, text.count, &descriptors, &count)
            if length < 0 {
                guard errno == EMSGSIZE else { return }
                Log.write("a message of the worker \(worker.process) is too long, and is ignored")
                continue
            }
            let received = descriptors.prefix(Int(count))
            guard let message = NotifyMessage(text.prefix(length)) else {
                Log.write("a message of the worker \(worker.process) is malformed, and is ignored")
                for descriptor in received { close(descriptor) }
                continue
            }
            handle(message, received)
        }
    }

    private mutating func handle(_ message: NotifyMessage, _ descriptors: ArraySlice<Int32>) {
        if message.removesDescriptors, let name = message.name { store.remove(name) }
        for descriptor in descriptors {
            guard message.storesDescriptors, !message.removesDescriptors else {
                // BARRIER=1: the sender waits until the descriptor is closed.
                close(descriptor)
                continue
            }
            let name = message.name ?? "stored"
            let isStored = store.store(descriptor, as: name)
            if !isStored { Log.write("there is no room for the descriptor '\(name)'") }
        }
        guard var worker else { return }
        if message.isReady, worker.readySince == nil {
            worker.readySince = Clock.now
            worker.lastSignOfLife = Clock.now
            if !wasReady { manager?.ready() }
            wasReady = true
            crashReport.remove()
        }
        if message.isStopping { worker.isStopping = true }
        if message.isLast { worker.isLast = true }
        if let status = message.status {
            Log.write("the worker \(worker.process): \(status)")
            manager?.tell(status: status)
        }
        switch message.watchdog {
        case .alive: if worker.lastSignOfLife != nil { worker.lastSignOfLife = Clock.now }
        case .failed:
            if worker.abortedAt == nil {
                Log.write("the worker \(worker.process) reports that it has failed, and is ended")
                abort(&worker)
            }
        case nil: break
        }
        self.worker = worker
    }
}
