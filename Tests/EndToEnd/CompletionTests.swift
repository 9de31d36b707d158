import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    @Suite struct Completions {
        @Test("CMD-11: completions know the domains, and the files at a path") func completions() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                #expect(try await Self.words("", of: "unmount", yonder).contains("mount"))
                #expect(try await Self.words(yonder.mount.string + "/", of: "unmount", yonder).contains(yonder["file"]))
            }
        }

        @Test("CMD-11: what is restored from the trash is no domain") func trashedItems() async throws {
            try await Installation.mounted { yonder async throws in
                #expect(try await Self.words("", of: "unmount", yonder).contains("mount"))
                let line = "yonder ---completion trash restore -- positional@0 3 0 yonder trash restore ''"
                #expect(try await !yonder.run(line).output.contains("mount"))
            }
        }

        @Test("CMD-11: the first word of mount is a domain or a directory") func sources() async throws {
            try await Installation.run { yonder in
                try yonder.write("x", to: "folder/nested/file")
                try yonder.write("x", to: "file")
                try yonder.write("x", to: ".hidden/file")
                try await yonder.mountSource("--name", "known")
                let source = yonder.source.string
                #expect(try await Self.words("", of: "mount", yonder) == ["known", "folder"])
                #expect(try await Self.words("folder/", of: "mount", yonder) == ["folder/nested"])
                #expect(try await Self.words(source + "/", of: "mount", yonder) == [source + "/folder"])
                #expect(try await Self.words(source + "/.", of: "mount", yonder).contains(source + "/.hidden"))
            }
        }

        @Test("CMD-11: the shell does not execute a name that it completes") func names() async throws {
            try await Installation.run { yonder in
                for name in ["$(touch executed)", "`touch executed`", "two words", "it's", "tab\tand \"more\""] {
                    try yonder.write("x", to: name + "/file")
                }
                let outcome = try await Command(
                    [
                        "bash", "-c",
                        """
                        cd "$2" && source <("$1" --generate-completion-script bash)
                        COMP_WORDS=("$1" unmount ./) COMP_CWORD=2 COMP_LINE="$1 unmount ./" COMP_POINT=$((${#1} + 11))
                        _yonder "$1" ./ unmount
                        printf '%s\\n' "${COMPREPLY[@]}"
                        """, "bash", Installation.program, yonder.source.string,
                    ], environment: yonder.environment
                ).run()
                #expect(
                    outcome.output
                        == """
                        ./$(touch executed)
                        ./`touch executed`
                        ./it's
                        ./two words

                        """, "\(outcome.errors)")
                #expect(!FileManager.default.fileExists(atPath: yonder.source.appending("executed").string))
            }
        }

        @Test("completions are made for the shells", arguments: ["bash", "zsh", "fish"])
        func scripts(shell: String) async throws {
            let outcome = try await Command([Installation.program, "--generate-completion-script", shell]).run()
            #expect(outcome.status == 0)
            #expect(outcome.output.contains("evict"))
        }

        /// What is offered for the first word after a command, in the source folder.
        private static func words(_ prefix: String, of command: String, _ yonder: Installation) async throws -> [String]
        {
            let line =
                "cd \"$3\" && yonder ---completion \"$2\" -- positional@0 2 ${#1} yonder \"$2\" \"$1\""
            return try await yonder.run(line, prefix, command, yonder.source.string).output.split(separator: "\n")
                .map(String.init)
        }
    }
}
