import Foundation
import Testing

/// What is kept in `Seeds`, and a short run of random changes to it. `scripts/fuzz` runs for as long as it is told.
@Suite struct ParserTests {
    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
        "Seeds")

    private func seeds(of parser: Parser) throws -> [[UInt8]] {
        let folder = Self.folder.appendingPathComponent(parser.rawValue)
        return try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
            .map { [UInt8](try Data(contentsOf: folder.appendingPathComponent($0))) }
    }

    @Test("every parser takes its seeds and random changes of them", arguments: Parser.allCases)
    func takesAnything(parser: Parser) throws {
        let seeds = try seeds(of: parser)
        try #require(!seeds.isEmpty)
        for seed in seeds { try parser.parse(seed) }
        let input = FileManager.default.temporaryDirectory.appendingPathComponent("yonder-fuzz-\(parser.rawValue)")
        defer { try? FileManager.default.removeItem(at: input) }
        let number = ProcessInfo.processInfo.environment["YONDER_SEED"].flatMap(UInt64.init) ?? 1
        var random = Numbers(state: number)
        let rounds = ProcessInfo.processInfo.environment["YONDER_FUZZ_ROUNDS"].flatMap(Int.init) ?? 300
        for round in 0..<rounds {
            var bytes = seeds[Int(random.next() % UInt64(seeds.count))]
            for _ in 0...(random.next() % 8) { mutate(&bytes, seeds, &random) }
            // A crash leaves its input there.
            try Data(bytes).write(to: input)
            do {
                try parser.parse(bytes)
            } catch {
                Issue.record(
                    "\(error) in round \(round) of seed \(number): \(Data(bytes.prefix(4096)).base64EncodedString())")
                return
            }
        }
    }

    private func mutate(_ bytes: inout [UInt8], _ seeds: [[UInt8]], _ random: inout Numbers) {
        func place(_ count: Int) -> Int { count == 0 ? 0 : Int(random.next() % UInt64(count)) }
        guard !bytes.isEmpty else {
            bytes = [UInt8(truncatingIfNeeded: random.next())]
            return
        }
        let start = place(bytes.count)
        let end = min(bytes.count, start + 1 + place(32))
        switch random.next() % 7 {
        case 0: bytes[start] ^= 1 << UInt8(random.next() % 8)
        case 1: bytes[start] = UInt8(truncatingIfNeeded: random.next())
        case 2: bytes.removeSubrange(start..<end)
        case 3: bytes.insert(contentsOf: bytes[start..<end], at: place(bytes.count))
        case 4: bytes.removeSubrange(start...)
        case 5: bytes.insert(contentsOf: Array("9223372036854775807".utf8), at: start)
        default:
            let other = seeds[place(seeds.count)]
            bytes.replaceSubrange(start..<end, with: other.dropFirst(place(other.count)).prefix(64))
        }
    }

    /// SplitMix64.
    private struct Numbers {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }
    }
}
