/// Runs a body for each element, some at a time. An error ends the others.
package func inParallel<Element: Sendable>(
    _ elements: [Element], width: Int, _ body: @escaping @Sendable (Element) async throws -> Void
) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
        for (index, element) in elements.enumerated() {
            if index >= width { try await group.next() }
            group.addTask { try await body(element) }
        }
        try await group.waitForAll()
    }
}
