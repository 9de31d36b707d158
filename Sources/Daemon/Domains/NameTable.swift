/// Values by the names of domains, which are bytes. Two names that differ only in Unicode normalization are equal as `String`, and one
/// key of a dictionary.
struct NameTable<Value> {
    private var entries: [[UInt8]: (name: String, value: Value)] = [:]

    subscript(name: String) -> Value? {
        get { entries[Array(name.utf8)]?.value }
        set { entries[Array(name.utf8)] = newValue.map { (name: name, value: $0) } }
    }

    var names: [String] { entries.values.map { $0.name } }
    var values: [Value] { entries.values.map { $0.value } }
}
