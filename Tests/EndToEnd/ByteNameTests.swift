import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Names that are not UTF-8.
    @Suite struct ByteNames {
        /// All that is in a directory, with the bytes of names and of links' targets, and the content of files.
        private func tree(of directory: String) async throws -> String {
            let outcome = try await Command.python(
                """
                import os, sys
                top = os.fsencode(sys.argv[1])
                for place, directories, files in sorted(os.walk(top)):
                    directories[:] = sorted(name for name in directories if not name.startswith(b".Trash"))
                    for name in sorted(directories + files):
                        path = os.path.join(place, name)
                        what = os.readlink(path) if os.path.islink(path) else \
                            open(path, "rb").read() if os.path.isfile(path) else b"directory"
                        print(path[len(top):], what)
                """, directory)
            #expect(outcome.errors == "")
            return outcome.output
        }

        private static let make = """
            cd "$1"; mkdir -p $'d\\xff/deep\\xc3'; echo one > $'d\\xff/deep\\xc3/caf\\xe9'; echo two > $'\\xf4\\x8f\\xbe\\x80'
            echo three > $'\\xc3'; echo four > $'\\xc3\\xa9'; ln -s $'target\\xfe' $'link\\xfd'
            echo five > "$(head -c 255 /dev/zero | tr '\\0' '\\377')"
            """

        @Test("NAME-9: names that are not UTF-8 are listed, made, renamed and removed, and a folder has them unchanged")
        func folder() async throws {
            try await Installation.run { yonder in
                try await yonder.expectDone(Self.make, yonder.source.string)
                try await yonder.mountSource()
                let before = try await tree(of: yonder.mount.string)
                #expect(before.contains(#"b'/d\xff/deep\xc3/caf\xe9' b'one\n'"#))
                #expect(try await tree(of: yonder.source.string) == before)
                try await yonder.shell(
                    """
                    mkdir $'new\\xff'; echo made > $'new\\xff/\\x80'; mv $'d\\xff/deep\\xc3' $'new\\xff/moved\\x81'
                    mv $'\\xc3' plain; mv $'\\xc3\\xa9' $'\\xe9'; echo more >> $'\\xf4\\x8f\\xbe\\x80'; ln -sf $'\\xfa' $'link\\xfd'
                    python3 -c 'import os; os.setxattr(b"\\xe9", "user.note", b"x")'
                    ! touch "$(head -c 256 /dev/zero | tr '\\0' '\\377')" 2> /dev/null
                    """)
                _ = try await yonder.yonder("wait", "--timeout", "30")
                #expect(try await yonder.pending() == [:])
                let after = try await tree(of: yonder.mount.string)
                #expect(after.contains(#"b'/new\xff/moved\x81/caf\xe9' b'one\n'"#))
                #expect(try await tree(of: yonder.source.string) == after)
                // What others do in the source is seen.
                try await yonder.expectDone(
                    "cd \"$1\"; mv $'\\xe9' $'\\xea'; echo new > $'fresh\\xeb'", yonder.source.string)
                let isSeen = await eventually(within: .seconds(20)) {
                    let seen = try? await tree(of: yonder.mount.string)
                    return seen?.contains(#"b'/\xea'"#) == true && seen?.contains(#"b'/fresh\xeb'"#) == true
                        && seen?.contains(#"b'/\xe9'"#) == false
                }
                #expect(isSeen)
                try await yonder.shell("rm -r $'new\\xff' $'\\xea'")
                _ = try await yonder.yonder("wait", "--timeout", "30")
                #expect(try await tree(of: yonder.source.string) == tree(of: yonder.mount.string))
            }
        }

        @Test("NAME-9: a folder has such names of extended attributes unchanged, also after an edit")
        func attributes() async throws {
            func names(in directory: String) async throws -> String {
                let outcome = try await Command.python(
                    """
                    import os, sys
                    names = map(os.fsencode, os.listxattr(os.path.join(sys.argv[1], "file")))
                    print(sorted(name for name in names if name[:5] == b"user."))
                    """, directory)
                #expect(outcome.errors == "")
                return outcome.output
            }
            try await Installation.run { yonder in
                try yonder.write("content", to: "file")
                try await yonder.expectDone(
                    "python3 -c 'import os, sys; os.setxattr(sys.argv[1], b\"user.there\\xfe\", b\"1\")' \"$1/file\"",
                    yonder.source.string)
                try await yonder.mountSource()
                #expect(try await names(in: yonder.mount.string) == "[b'user.there\\xfe']\n")
                try await yonder.shell(
                    """
                    python3 -c 'import os; os.setxattr("file", b"user.here\\xff", b"2")'
                    """)
                _ = try await yonder.yonder("wait", "--timeout", "30")
                let both = "[b'user.here\\xff', b'user.there\\xfe']\n"
                #expect(try await names(in: yonder.source.string) == both)
                try await yonder.shell("echo more >> file")
                _ = try await yonder.yonder("wait", "--timeout", "30")
                #expect(try await names(in: yonder.source.string) == both)
                #expect(try await names(in: yonder.mount.string) == both)
                try await yonder.shell(
                    """
                    python3 -c 'import os; os.removexattr("file", b"user.there\\xfe")'
                    """)
                _ = try await yonder.yonder("wait", "--timeout", "30")
                #expect(try await names(in: yonder.source.string) == "[b'user.here\\xff']\n")
            }
        }

        @Test("NAME-9: a folder with such names is imported, and they are kept when the domain is removed")
        func importing() async throws {
            try await Installation.run { yonder in
                let folder = try yonder.directory.makeDirectory("folder").string
                try await yonder.expectDone(Self.make, folder)
                let before = try await tree(of: folder)
                try await yonder.yonder("import", folder, yonder.source.string, yonder.mount.string).expectSuccess()
                #expect(try await tree(of: yonder.mount.string) == before)
                _ = try await yonder.yonder("wait", "--timeout", "30")
                #expect(try await tree(of: yonder.source.string) == before)
                let kept = yonder.directory["kept"].string
                try await yonder.yonder("remove", "mount", "--keep", "downloaded", "--to", kept).expectSuccess()
                #expect(try await tree(of: kept + "/files") == before)
            }
        }

        @Test("NAME-10: the command line takes and prints such names as they are, and JSON has them as text")
        func commandLine() async throws {
            try await Installation.run { yonder in
                try await yonder.expectDone(Self.make, yonder.source.string)
                try await yonder.mountSource()
                try await yonder.shell("cat $'\\xc3' > /dev/null; ls $'d\\xff/deep\\xc3'")
                /// What a line of shell prints in the mount, in hexadecimal digits.
                func bytes(_ line: String) async throws -> String {
                    let outcome = try await Command(
                        [
                            "bash", "-c", "cd \"$1\" && { \(line); } | od -An -v -tx1 | tr -d ' \\n'", "bash",
                            yonder.mount.string, Installation.program,
                        ], environment: yonder.environment, seconds: 60
                    ).run()
                    #expect(outcome.errors == "")
                    return outcome.output
                }
                // A slash, and the name.
                #expect(try await bytes("\"$2\" info $'\\xc3'").contains("2fc30a"))
                // "deep", and what follows.
                #expect(try await bytes("\"$2\" ls $'d\\xff'").contains("64656570c3"))
                #expect(try await bytes("cd $'d\\xff'; \"$2\" info $'deep\\xc3/caf\\xe9'").contains("2f636166e90a"))
                _ = try await bytes("\"$2\" evict $'\\xc3'")
                let items = try await yonder.json([ItemInformation].self, "ls", yonder.mount.string)
                #expect(items.first { $0.path.hasSuffix("/\u{10FFC3}") }?.content == "dataless")
                // The trash keeps the name, and says where it was.
                _ = try await bytes("\"$2\" trash put $'\\xc3'")
                _ = try await yonder.yonder("wait", "--timeout", "30")
                let said = try await yonder.expectDone("cat \"$1\"/.Trash-*/info/*", yonder.source.string)
                #expect(said.contains("Path=%C3\n"), "\(said)")
            }
        }

        @Test("NAME-10: a local file with such a name is added under it") func adding() async throws {
            try await Installation.mounted { yonder in
                let folder = try yonder.directory.makeDirectory("folder").string
                try await yonder.expectDone("printf added > \"$1\"/$'caf\\xe9'", folder)
                let added = try await yonder.run(
                    "yonder add \"$1/$(printf 'caf\\351')\" \"$2\"", folder, yonder.mount.string)
                #expect(added.status == 0, "\(added.errors)")
                #expect(try await tree(of: yonder.mount.string) == #"b'/caf\xe9' b'added'"# + "\n")
                #expect(try await yonder.yonder("wait", "--timeout", "30").status == 0)
                #expect(try await tree(of: yonder.source.string) == #"b'/caf\xe9' b'added'"# + "\n")
            }
        }

        @Test("NAME-10: the directories of a mount, its source, an import and a removal may have such paths")
        func directories() async throws {
            try await Installation.run { yonder in
                let line = #"""
                    program=$2; yonder() { "$program" "$@"; }
                    set -ex; cd "$1"
                    mkdir $'s\xff'; echo one > $'s\xff/one'
                    yonder mount $'s\xff' $'m\xff' --name d
                    test "$(cat $'m\xff/one')" = one
                    ln -s $'m\xff' link; yonder ls link | grep one
                    cd $'m\xff'; yonder info one; echo two > two; cd ..
                    yonder wait --timeout 30; test "$(cat $'s\xff/two')" = two
                    yonder doctor > doctor || true; if grep "the mount cannot be read" doctor; then exit 1; fi
                    yonder unmount $'m\xff'
                    chmod u+w $'m\xff'; echo three > $'m\xff/three'
                    yonder mount d --move-found; test "$(cat $'m\xff/three')" = three
                    yonder remove d --keep downloaded --to $'k\xff'
                    test -e $'k\xff/manifest.json'; test "$(cat $'k\xff/files/two')" = two
                    yonder import --yes $'k\xff' $'s\xff' $'m\xff' --name d
                    test ! -e $'k\xff'; test "$(cat $'m\xff/three')" = three
                    yonder wait --timeout 60; test "$(cat $'s\xff/three')" = three
                    yonder remove d --to $'other\xff'
                    for name in s m k other; do test ! -e "$name"$'\xef\xbf\xbd'; test ! -e "$name"$'\xf4\x8f\xbf\xbf'; done
                    """#
                try await Command(
                    ["bash", "-c", line, "bash", yonder.directory.path.string, Installation.program],
                    environment: yonder.environment, seconds: 120
                ).run().expectSuccess()
            }
        }

        @Test("NAME-11: a remote that cannot have such a name leaves it here, and says so") func webDAV() async throws {
            try await FarRemote.run(.webDAV) { remote, yonder in
                try await remote.mount(yonder)
                try await yonder.shell(
                    "echo here > $'\\xc3'; mkdir $'d\\xff'; echo below > $'d\\xff/file'; echo sent > sent; mv sent $'\\xfe'; echo x > y"
                )
                try await yonder.yonder("wait", "--timeout", "30").expectSuccess()
                #expect(try await yonder.pending() == [:])
                #expect(try await remote.has("y"))
                #expect(try await tree(of: yonder.mount.string).contains(#"b'/d\xff/file' b'below\n'"#))
                let items = try await yonder.json([ItemInformation].self, "ls", yonder.mount.string)
                #expect(items.first { $0.path.hasSuffix("/\u{10FFC3}") }?.sync == "excluded")
                let why = try await yonder.run("yonder why \"$1\"/\"$(printf '\\303')\"", yonder.mount.string)
                #expect(why.output.contains("not UTF-8"), "\(why.output)\(why.errors)")
                // With another name it is sent.
                try await yonder.shell("mv $'\\xc3' plain; mv $'d\\xff' directory")
                _ = try await yonder.yonder("wait", "--timeout", "30")
                #expect(try await remote.has("plain"))
                #expect(try await remote.has("directory/file"))
            }
        }
    }
}
