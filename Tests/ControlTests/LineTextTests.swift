import Control
import Testing

@Suite struct LineTextTests {
    @Test(
        "What ends a line or commands a terminal is escaped, and nothing else",
        arguments: [
            ("plain ü 日本 \\ text", "plain ü 日本 \\ text"), ("a\nb\r\tc", "a\\nb\\r\\tc"), ("\u{1B}[2J", "\\x{1b}[2J"),
            ("\u{7F}\u{9B}\u{0}", "\\x{7f}\\x{9b}\\x{0}"), ("\u{2028}\u{202E}x", "\\x{2028}\\x{202e}x"),
        ])
    func escapes(text: String, wanted: String) {
        #expect(LineText.escaped(text) == wanted)
    }
}
