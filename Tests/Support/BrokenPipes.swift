import Foundation

/// As the daemon does: a write to a program that has ended fails with EPIPE, instead of ending this process.
package enum BrokenPipes {
    package static let areIgnored: Void = { signal(SIGPIPE, SIG_IGN) }()
}
