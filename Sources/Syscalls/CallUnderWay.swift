import CSyscalls
import FileNames
import Glibc
import SystemPackage

/// The system call in which another thread is blocked, if the kernel shows it to this process: threads of the same
/// user, or all for root, unless Yama forbids it (/proc/sys/kernel/yama/ptrace_scope).
package enum CallUnderWay {
    /// Whether a thread is in a system call that gives this name to a new file, directory, node or link, or to something else.
    ///
    /// FUSE's LOOKUP does not contain the purpose of the lookup; /proc/PID/syscall and /proc/PID/mem do.
    ///
    /// - Parameters:
    ///   - name: encoded by ``FileNameText``.
    ///   - thread: the thread number in the FUSE request.
    /// - Returns: false if it is unknown, also for a rename or link whose old path has the same name: it may be the one that
    ///   is looked up.
    package static func makes(_ name: String, thread: Int32) -> Bool {
        guard thread > 0, let (call, arguments) = call(of: thread) else { return false }
        var flagsAt: UInt64 = 0
        var source: Int32 = -1
        let index = arguments.withUnsafeBufferPointer { yonder_created_path(call, $0.baseAddress, &flagsAt, &source) }
        guard index >= 0,
            let memory = try? FileDescriptor.open(
                FilePath("/proc/\(thread)/mem"), .readOnly, options: .closeOnExec)
        else { return false }
        defer { try? memory.close() }
        if flagsAt != 0 {
            guard let bytes = bytes(at: flagsAt, count: 8, of: memory), bytes.count == 8 else { return false }
            let flags = bytes.reversed().reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
            guard flags & UInt64(O_CREAT) != 0 else { return false }
        }
        let name = FileNameText.bytes(of: name)[...]
        guard let path = components(at: arguments[Int(index)], of: memory), path.last == name else { return false }
        guard source >= 0 else { return true }
        guard let old = components(at: arguments[Int(source)], of: memory) else { return false }
        return !old.contains(name)
    }

    /// The components of the path that is at an address.
    private static func components(at address: UInt64, of memory: FileDescriptor) -> [ArraySlice<UInt8>]? {
        text(at: address, of: memory)?.split(separator: UInt8(ascii: "/"))
    }

    /// The number of the call and its six arguments.
    private static func call(of thread: Int32) -> (Int64, [UInt64])? {
        guard let bytes = try? FilePath("/proc/\(thread)/syscall").contents() else { return nil }
        let words = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isWhitespace)
        guard words.count >= 7, let call = Int64(words[0]) else { return nil }
        let arguments = words[1...6].compactMap { UInt64($0.dropFirst(2), radix: 16) }
        return arguments.count == 6 ? (call, arguments) : nil
    }

    private static let page: UInt64 = 4096
    private static let longestPath = 4096

    /// Bytes of another process's memory, as far as they are mapped.
    private static func bytes(at address: UInt64, count: Int, of memory: FileDescriptor) -> [UInt8]? {
        guard let offset = Int64(exactly: address) else { return nil }
        return try? memory.readBytes(at: offset, count: count)
    }

    /// A zero-terminated string, without its terminator.
    private static func text(at start: UInt64, of memory: FileDescriptor) -> [UInt8]? {
        var text: [UInt8] = []
        var address = start
        while text.count < longestPath {
            // The page after the end of the string may be unmapped.
            let count = Int(page - address % page)
            guard let bytes = bytes(at: address, count: count, of: memory), !bytes.isEmpty else { return nil }
            if let end = bytes.firstIndex(of: 0) { return text + bytes[..<end] }
            text += bytes
            address += UInt64(bytes.count)
        }
        return nil
    }
}
