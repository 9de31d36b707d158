import Foundation

/// `~/.aws/credentials` and `~/.aws/config`: sections of settings.
package struct AWSFile: Sendable {
    /// By section, as it is named between the brackets.
    package private(set) var sections: [String: [String: String]] = [:]

    package init(text: String) {
        var section: String?
        var outer: String?
        for line in text.split(whereSeparator: \.isNewline) {
            let isNested = line.first == " " || line.first == "\t"
            let words = line.trimmingCharacters(in: .whitespaces)
            guard !words.isEmpty, words.first != "#", words.first != ";" else { continue }
            if words.first == "[" {
                section = words.dropFirst().prefix { $0 != "]" }.trimmingCharacters(in: .whitespaces)
                section.map { sections[$0, default: [:]] = sections[$0] ?? [:] }
                outer = nil
                continue
            }
            guard let section, let equals = words.firstIndex(of: "=") else { continue }
            let name = words[..<equals].trimmingCharacters(in: .whitespaces)
            let value = words[words.index(after: equals)...].trimmingCharacters(in: .whitespaces)
            if isNested, let outer {
                sections[section]?["\(outer).\(name)"] = value
            } else {
                sections[section]?[name] = value
                outer = value.isEmpty ? name : nil
            }
        }
    }

    package init(path: String) {
        self.init(text: (try? String(contentsOfFile: path, encoding: .utf8)) ?? "")
    }
}
