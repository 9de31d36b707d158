import CoreMetrics
import FileProvider
import Foundation
import Replica
import Sync
import Syscalls
import SystemPackage
import Volume

/// Fulfils the prerequisites of a volume's requests by the sync engine.
struct Provisioner: Provisioning {
    let engine: SyncEngine
    let policy: MaterializationPolicy
    let thumbnails: ThumbnailMaker?
    let domain: String

    func provide(
        _ prerequisite: Prerequisite, for caller: Requester, completion: @escaping @Sendable (Errno?) -> Void
    ) -> any Cancellation {
        let completion: @Sendable (Errno?) -> Void = { error in
            // The kernel replaces EAGAIN of setxattr by EOPNOTSUPP, which means that a retry is useless.
            let isLost = error == .resourceTemporarilyUnavailable && prerequisite.isAskedByAttribute
            completion(isLost ? .resourceBusy : error)
        }
        return TaskCancellation(
            task: Task {
                let start = ContinuousClock.now
                defer { record(prerequisite, waited: .now - start) }
                do {
                    let error = try await provide(prerequisite, for: caller)
                    if error == nil, prerequisite.isAskedByAttribute, let cause = prerequisite.cause {
                        engine.warnings.succeeded(cause)
                    }
                    completion(error)
                } catch let error as FileProviderError {
                    if error.readerErrno == .ioError { reportInputOutputError(error, caller, prerequisite) }
                    completion(error.readerErrno)
                } catch is CancellationError {
                    completion(.interrupted)
                } catch {
                    reportInputOutputError(error, caller, prerequisite)
                    completion(.ioError)
                }
            })
    }

    private func record(_ prerequisite: Prerequisite, waited duration: Duration) {
        CoreMetrics.Timer(
            label: "yonder_wait_seconds", dimensions: [("domain", domain), ("for", prerequisite.word)]
        ).recordNanoseconds(Int64(duration / .nanoseconds(1)))
    }

    /// The process learns no more than EIO.
    private func reportInputOutputError(_ error: any Error, _ caller: Requester, _ prerequisite: Prerequisite) {
        engine.warnings.report(
            "process \(caller.processIdentifier) gets an input/output error: \(error)", of: prerequisite.cause)
    }

    private func provide(_ prerequisite: Prerequisite, for caller: Requester) async throws -> Errno? {
        if let refusal = policy.refusal(of: caller.processIdentifier) {
            guard await isHere(prerequisite) else {
                // The cache of thumbnails is that of the daemon's user.
                if refusal.isOfThumbnailer, caller.userIdentifier == Machine.userIdentifier,
                    let number = prerequisite.file
                {
                    await thumbnails?.make(number)
                }
                return .remote
            }
            if prerequisite.fileRead != nil { return nil }
        }
        if let number = prerequisite.fileRead, await isOverBudget(caller, number) {
            // The engine would fetch more ahead of the reader.
            return await isHere(prerequisite) ? nil : .remote
        }
        switch prerequisite {
        case .listing(let number, let beyond):
            try await engine.list(number, beyond: beyond, request: caller.request(.listing))
        case .content(let number, let version, let range):
            try await engine.provide(number, version: version, range: range, request: reading(caller))
        case .claim(let number):
            await engine.waitForClaims(of: number)
        case .whole(let number):
            try await engine.materialize(number, request: reading(caller))
        case .download(let number):
            let failures = try await engine.download(number, request: caller.request(.download)) { _, _ in }
            return failures.first?.error.controlErrno
        case .upload(let number):
            try await engine.send(number)
        case .eviction(let number):
            let report = try await engine.evict(number, isStrict: true)
            guard let first = report.refusals.first else { return nil }
            return first.number == number ? first.refusal.errno : EvictionRefusal.nonEvictableChildren.errno
        case .room:
            try await engine.makeRoom()
        case .permission:
            break
        }
        return nil
    }

    private func reading(_ caller: Requester) -> FileProviderRequest {
        caller.request(.reading, by: policy.budget.account(of: caller.processIdentifier))
    }

    /// Whether a process has exceeded its fetch budget.
    private func isOverBudget(_ caller: Requester, _ number: InodeNumber) async -> Bool {
        let process = policy.budget.account(of: caller.processIdentifier)
        guard let (reader, isNews) = policy.budget.refusal(of: process) else { return false }
        policy.budget.note(reader, refused: FetchBudget.Place(domain: domain, inode: number))
        if isNews { engine.tellOverBudget(number, process: reader.words, fetched: reader.fetched) }
        return true
    }

    /// Whether no fetch is needed: the bytes are here, but not recorded in the database yet.
    private func isHere(_ prerequisite: Prerequisite) async -> Bool {
        switch prerequisite {
        case .claim, .eviction, .upload, .room: true
        case .permission(let number):
            (try? await engine.hasContent(number)) == true
        case .content(let number, let version, let range):
            await engine.holds(number, version: version, range: range)
        case .listing, .whole, .download: false
        }
    }

    private struct TaskCancellation: Cancellation {
        let task: Task<Void, Never>

        func cancel() { task.cancel() }
    }
}

extension Requester {
    /// The request that the provider receives for this process.
    ///
    /// - Parameter account: see ``FetchBudget/account(of:)``; nil for the process.
    func request(_ reason: FileProviderRequest.Reason, by account: Int32? = nil) -> FileProviderRequest {
        FileProviderRequest(
            reason: reason, processIdentifier: account ?? ObservedProcess.leader(of: processIdentifier),
            userIdentifier: userIdentifier,
            requestingExecutable: try? FileManager.default.destinationOfSymbolicLink(
                atPath: "/proc/\(processIdentifier)/exe"))
    }
}

extension Prerequisite {
    /// The prerequisite's name in metrics.
    fileprivate var word: String {
        switch self {
        case .listing: "listing"
        case .content, .whole: "content"
        case .claim: "claim"
        case .download: "download"
        case .upload: "upload"
        case .eviction: "eviction"
        case .room: "room"
        case .permission: "permission"
        }
    }

    /// What has to succeed for a warning of its failure to go; nil for one that stays.
    fileprivate var cause: Warnings.Cause? {
        switch self {
        case .listing(let number, _): .listing(number)
        case .content(let number, _, _), .whole(let number): .content(number)
        case .upload(let number): .upload(number)
        case .download(let number): .download(number)
        case .eviction(let number): .eviction(number)
        case .claim, .room, .permission: nil
        }
    }

    /// Whether the prerequisite may come from setxattr.
    fileprivate var isAskedByAttribute: Bool {
        switch self {
        case .download, .upload, .eviction: true
        case .claim, .listing, .content, .whole, .room, .permission: false
        }
    }

    /// The file that a process reads or opens to read; nil for other prerequisites.
    fileprivate var file: InodeNumber? {
        if case .permission(let number) = self { return number }
        return fileRead
    }

    /// The file that a process reads; nil for other prerequisites.
    fileprivate var fileRead: InodeNumber? {
        switch self {
        case .content(let number, _, _), .whole(let number): number
        case .claim, .listing, .download, .upload, .eviction, .room, .permission: nil
        }
    }
}

extension EvictionRefusal {
    /// The errno of an eviction that was requested by attribute.
    var errno: Errno {
        switch self {
        case .unsyncedEdits, .existsOnlyHere, .isExcluded: .nowInProgress
        case .nonEvictable: .notPermitted
        case .isOpen, .isDownloading, .isBeingListed, .isInUse, .removalsAreHeld: .resourceBusy
        case .isHardLinked: .tooManyLinks
        case .nonEvictableChildren: .directoryNotEmpty
        case .noSuchItem: .noSuchFileOrDirectory
        case .failed(let error): error
        }
    }

    /// The code in JSON.
    var code: String {
        switch self {
        case .unsyncedEdits, .existsOnlyHere, .isExcluded: "unsyncedEdits"
        case .nonEvictable: "nonEvictable"
        case .isOpen, .isDownloading, .isBeingListed, .isInUse, .removalsAreHeld: "EBUSY"
        case .isHardLinked: "EMLINK"
        case .nonEvictableChildren: "nonEvictableChildren"
        case .noSuchItem: "noSuchItem"
        case .failed(let error): Self.names[error] ?? "posix"
        }
    }

    var words: String {
        switch self {
        case .unsyncedEdits: "a local change is not on the remote yet; see 'yonder pending'"
        case .nonEvictable: "it is kept downloaded; 'yonder unpin' it first"
        case .existsOnlyHere: "it exists on this machine only until it has been uploaded; see 'yonder pending'"
        case .isExcluded: "it exists on this machine only and is never uploaded"
        case .isOpen: "it is open"
        case .isDownloading: "it is being downloaded"
        case .isBeingListed: "a process is listing it"
        case .isInUse: "a process read or listed it again while its directory was being evicted"
        case .isHardLinked: "it has several hard links"
        case .removalsAreHeld:
            "much has vanished on the remote, and what is here may be the last copy; see 'yonder status'"
        case .nonEvictableChildren: "an item in it was not evicted"
        case .noSuchItem: "there is no such item"
        case .failed(let error): "its content file cannot be removed: \(error)"
        }
    }

    private static let names: [Errno: String] = [
        .notPermitted: "EPERM", .permissionDenied: "EACCES", .ioError: "EIO", .readOnlyFileSystem: "EROFS",
        .noSpace: "ENOSPC", .isDirectory: "EISDIR",
    ]
}
