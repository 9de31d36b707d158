import Foundation

/// The command line's encoding of tags in tag data: one line of text each. Tag data of other programs may be anything.
package enum Tags {
    /// Each tag once. Two that differ only in Unicode normalization are two.
    package static func data(_ tags: [String]) -> Data {
        var seen: Set<[UInt8]> = []
        return Data(tags.filter { seen.insert(Array($0.utf8)).inserted }.joined(separator: "\n").utf8)
    }

    /// The tags; nil for data that is not text.
    package static func tags(in data: Data) -> [String]? {
        guard let text = String(validating: data, as: UTF8.self), !text.utf8.contains(0) else { return nil }
        return text.split(separator: "\n").map(String.init)
    }
}
