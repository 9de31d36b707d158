/// The version of `yonder`, `yonderd` and the packages: the only place that says it.
package enum Version {
    package static let current = "0.1.0"
}
