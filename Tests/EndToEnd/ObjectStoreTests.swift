import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// A bucket as a folder.
    @Suite struct ObjectStores {
        private func withBucket(_ body: (ObjectStoreProgram, Installation, [String]) async throws -> Void) async throws
        {
            let store = try await ObjectStoreProgram()
            try await withCleanUp({ store.stop() }) {
                let made = try await store.ask(
                    """
                    ask -X PUT "$at/bucket" && printf one | ask -T - "$at/bucket/top/a/one" \\
                        && printf outside | ask -T - "$at/bucket/outside"
                    """)
                #expect(made.status == 0, "\(made.errors)")
                try await Installation.run { installation in
                    let yonder = installation.with([
                        "AWS_ACCESS_KEY_ID": ObjectStoreProgram.accessKey,
                        "AWS_SECRET_ACCESS_KEY": ObjectStoreProgram.secretKey,
                        "HOME": installation.directory.path.string,
                    ])
                    let mount = [
                        "mount", "s3://bucket/top", yonder.mount.string, "--endpoint", store.endpoint, "--region",
                        ObjectStoreProgram.region,
                    ]
                    try await body(store, yonder, mount)
                }
            }
        }

        @Test("what lies below a prefix of a bucket is a folder, to read and to write") func worksAsAFolder()
            async throws
        {
            try await withBucket { store, yonder, mount in
                let mounted = try await yonder.yonder(words: mount)
                try #require(mounted.status == 0, "\(mounted.errors)")
                let read = try await Command.shell("cd \"$1\" && find . | sort && cat a/one", yonder.mount.string)
                #expect(read.output == ".\n./a\n./a/one\none")
                try await yonder.expectDone(
                    """
                    cd "$1" && mkdir new && printf two > new/two && ln -s two new/link && mv a b && printf more >> b/one \\
                        && touch -d @1234567890 new/two
                    """, yonder.mount.string)
                let waited = try await yonder.yonder("wait", "--timeout", "50")
                let pending = try await yonder.yonder("pending")
                #expect(waited.status == 0 && pending.output.isEmpty, "\(waited.errors) \(pending.output)")
                let there = try await store.ask("ask \"$at/bucket\"; ask \"$at/bucket/top/b/one\"")
                #expect(
                    there.output == "outside\ntop/b/one\ntop/new/\ntop/new/link.rclonelink\ntop/new/two\nonemore",
                    "\(there.output)")
                let date = try await store.ask("ask -I \"$at/bucket/top/new/two\" | grep -i 'meta-mtime'")
                #expect(date.output.contains("1234567890"))
                // What others change is seen.
                _ = try await store.ask("printf three | ask -T - \"$at/bucket/top/new/three\"")
                _ = try await yonder.yonder("signal", "--wait")
                #expect(try await Command.run("cat", yonder["new/three"]).output == "three")
                try await Command.shell("cd \"$1\" && rm -r new b", yonder.mount.string).expectSuccess()
                _ = try await yonder.yonder("wait", "--timeout", "50")
                #expect(try await store.ask("ask \"$at/bucket\"").output == "outside\n")
            }
        }

        @Test(
            "S3-4: a mode is stored with an object, also when it is set later, and is that of the file once it was read"
        )
        func modes() async throws {
            try await withBucket { _, yonder, mount in
                try #require(try await yonder.yonder(words: mount).status == 0)
                try await yonder.expectDone(
                    "cd \"$1\" && umask 022 && printf '#!/bin/sh\\necho ran\\n' > script && printf x > secret && chmod 600 secret",
                    yonder.mount.string)
                #expect(try await yonder.yonder("wait", "--timeout", "50").status == 0)
                #expect(try await Command.run("chmod", "755", yonder["script"]).status == 0)
                #expect(try await yonder.yonder("wait", "--timeout", "50").status == 0)
                #expect(try await yonder.yonder("pending").output == "")
                // Another machine knows nothing of it.
                #expect(try await yonder.yonder("remove", "mount", "--keep", "none").status == 0)
                try #require(try await yonder.yonder(words: mount).status == 0)
                _ = try await Command.shell("cat \"$1\"/*", yonder.mount.string)
                #expect(try await eventually { try await yonder.shell("stat -c %a script") == "755\n" })
                let seen = try await Command.shell(
                    "cd \"$1\" && stat -c '%a %n' script secret && ./script", yonder.mount.string)
                #expect(seen.output == "755 script\n600 secret\nran\n", "\(seen.errors)")
                // What is set here stays, also over another read.
                #expect(try await Command.run("chmod", "640", yonder["secret"]).status == 0)
                #expect(try await yonder.yonder("wait", "--timeout", "50").status == 0)
                #expect(try await yonder.yonder("evict", yonder["secret"]).status == 0)
                #expect(try await Command.run("cat", yonder["secret"]).output == "x")
                // Attributes are recorded a moment after the bytes have come.
                #expect(try await yonder.yonder("signal", "--wait").status == 0)
                #expect(try await yonder.shell("stat -c %a secret") == "640\n")
            }
        }

        @Test("a daemon that is killed while a directory is renamed leaves nothing twice, and loses nothing")
        func survivesBeingKilledInARenaming() async throws {
            try await withBucket { store, yonder, mount in
                try #require(try await yonder.yonder(words: mount).status == 0)
                try await yonder.expectDone(
                    "cd \"$1\" && mkdir d && for i in $(seq 120); do printf %s $i > d/$i; done", yonder.mount.string)
                #expect(try await yonder.yonder("wait", "--timeout", "50").status == 0)
                let daemon = try #require(yonder.daemon)
                let keeper = try #require(yonder.keeper)
                try await Command.shell("mv \"$1/d\" \"$1/e\"", yonder.mount.string).expectSuccess()
                // In the midst of the copies.
                let killed = try await store.ask(
                    """
                    for i in $(seq 500); do ask "$at/bucket?prefix=top/e/" | grep -q . && break; sleep 0.01; done
                    kill -9 \(keeper) \(daemon)
                    ask "$at/bucket?prefix=top/d/" | wc -l
                    """)
                #expect(killed.line == "121", "too late: \(killed.output) are still where they were")
                try await yonder.yonder(words: mount).expectSuccess()
                try await yonder.yonder("wait", "--timeout", "50").expectSuccess()
                let there = try await store.ask("ask \"$at/bucket?prefix=top/\" | sort")
                let expected = (["top/a/one", "top/e/"] + (1...120).map { "top/e/\($0)" }).sorted().joined(
                    separator: "\n")
                #expect(there.line.split(separator: "\n").sorted().joined(separator: "\n") == expected)
                let read = try await Command.shell("cd \"$1\" && ls && cat e/* | wc -c", yonder.mount.string)
                #expect(read.output == "a\ne\n252\n", "\(read.output) \(read.errors)")
            }
        }

        @Test("credentials are kept for the next mount where only their owner can read them, and nowhere else")
        func keepsCredentials() async throws {
            try await withBucket { _, yonder, mount in
                let wrong = yonder.with(["AWS_SECRET_ACCESS_KEY": "not-the-secret"])
                let refused = try await wrong.yonder(words: mount)
                #expect(refused.status == 1)
                #expect(refused.errors.contains("the secret key is not the access key's"), "\(refused.errors)")
                #expect(!refused.errors.contains("not-the-secret"))
                #expect(try await yonder.yonder(words: mount).status == 0)
                _ = try await yonder.yonder("shutdown")
                // Another shell, which knows nothing of them.
                let other = Installation(
                    directory: yonder.directory, source: yonder.source, mount: yonder.mount,
                    environment: yonder.environment.filter { !$0.key.hasPrefix("AWS_") })
                try await other.yonder("mount", "mount").expectSuccess()
                #expect(try await Command.run("cat", yonder["a/one"]).output == "one")
                let modes = try await Command.shell(
                    "stat -c '%a %n' \"$1\"/credentials/* && ! grep -rqF '\"\(ObjectStoreProgram.secretKey)\"' \"$1/state\" "
                        + "&& ! grep -rq AWS_ \"$1/state\"", yonder.directory.path.string)
                #expect(modes.status == 0 && modes.output.hasPrefix("600 "), "\(modes.output)")
            }
        }
    }
}
