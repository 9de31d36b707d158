import FileNames
import Testing

@Suite struct ShellWordTests {
    @Test(
        "CMD-8: a name in a command of a message is one word for a shell",
        arguments: [
            ("archive", "archive"), ("s3://bucket/a_b-c.d,e:f@g+1", "s3://bucket/a_b-c.d,e:f@g+1"),
            ("caf\u{E9}", "caf\u{E9}"),
            ("my photos", #"my\ photos"#), ("it's", #"it\'s"#), ("$(x) `y` !z", #"\$\(x\)\ \`y\`\ \!z"#),
            ("~a", #"\~a"#),
            (#"a"b\c"#, #"a\"b\\c"#), ("", ""),
        ])
    func escapes(_ text: String, _ word: String) {
        #expect(ShellWord.escaped(text) == word)
    }
}
