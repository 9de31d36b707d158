/// Waits until something is so, looking again and again: no longer than needed, and no longer than the deadline, or three times
/// that on a machine that leaves no time for 50 looks.
///
/// - Returns: whether it came to be so.
package func eventually(
    within deadline: Duration = .seconds(5), _ condition: () async throws -> Bool
) async rethrows -> Bool {
    let clock = ContinuousClock()
    let end = clock.now + deadline
    var checks = 0
    while true {
        if try await condition() { return true }
        checks += 1
        // On a loaded machine the deadline may pass while neither the test nor what it waits for has a processor.
        if clock.now > end, checks >= 50 || clock.now > end + deadline * 2 { return false }
        try? await Task.sleep(for: .milliseconds(5))
    }
}
