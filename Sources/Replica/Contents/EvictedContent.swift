import Syscalls
import SystemPackage

/// The content file of a generation that is being evicted. It is moved out of the way inside the eviction's transaction, so
/// that an eviction whose file cannot be removed fails; and it is deleted after the commit, so that a crash before the commit
/// loses no content.
struct EvictedContent {
    let number: InodeNumber
    /// The generation that the row has until the eviction is committed.
    let generation: Int64
    private let file: FilePath
    private let place: FilePath

    init(_ number: InodeNumber, generation: Int64, in contents: ContentStore) {
        self.number = number
        self.generation = generation
        file = contents.path(of: number)
        place = contents.evicted.appending("\(number)-\(generation)")
    }

    /// - Parameter name: of a file that an eviction has left; nil for a name that no eviction gives.
    init?(left name: String, in contents: ContentStore) {
        let numbers = name.split(separator: "-").compactMap { Int64($0) }
        guard numbers.count == 2 else { return nil }
        self.init(InodeNumber(rawValue: numbers[0]), generation: numbers[1], in: contents)
    }

    /// Precondition: a writing transaction. Nothing happens where the file is missing.
    ///
    /// - Throws: `isDirectory` for what is no file.
    func withdraw() throws(Errno) {
        do throws(Errno) {
            guard try FileStatus(at: file).kind == .regular else { throw Errno.isDirectory }
            try file.move(to: place)
        } catch {
            guard error == .noSuchFileOrDirectory else { throw error }
        }
    }

    /// The eviction was not committed.
    func putBack() throws(Errno) {
        do throws(Errno) {
            guard (try? FileStatus(at: file)) == nil else { return try place.unlinkIfPresent() }
            try place.move(to: file)
        } catch {
            guard error == .noSuchFileOrDirectory else { throw error }
        }
    }

    /// The eviction was committed.
    func delete() throws(Errno) { try place.unlinkIfPresent() }
}
