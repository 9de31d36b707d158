/// The options of a domain, of `yonder show` and `yonder set`.
package struct OptionsReport: Codable, Hashable, Sendable {
    /// An option and its value in the words that `yonder set` takes.
    package struct Option: Codable, Hashable, Sendable {
        package var name: String
        /// Nil for an option of the source that is not set.
        package var value: String?

        package init(name: String, value: String?) {
            self.name = name
            self.value = value
        }
    }

    package var name: String
    package var source: String
    package var mountpoint: String?
    package var isMounted: Bool
    /// `ignore` once for each pattern.
    package var options: [Option]

    package init(name: String, source: String, mountpoint: String?, isMounted: Bool, options: [Option]) {
        self.name = name
        self.source = source
        self.mountpoint = mountpoint
        self.isMounted = isMounted
        self.options = options
    }
}
