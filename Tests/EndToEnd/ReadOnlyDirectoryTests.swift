import TestSupport
import Testing

extension RealMount {
    /// Directories whose modes deny their owner to write. Root may always.
    @Suite struct ReadOnlyDirectories {
        @Test(
            "READ-10: what the source denied to read is read as soon as chmod(1) has returned in the mount",
            .ordinaryUser)
        func readAtOnce() async throws {
            try await OrdinaryUser.run { user in
                let outcome = try await user.shell(
                    """
                    set -e; cd "$SOURCE"; mkdir -p denied/deep below; echo file > file; echo deep > denied/deep/file; echo x > below/x
                    chmod 000 denied/deep denied file; chmod 300 below; yonder mount "$SOURCE" "$MOUNT" > /dev/null; cd "$MOUNT"
                    ls > /dev/null; ! cat file 2> /dev/null; ! ls denied 2> /dev/null; ! ls below 2> /dev/null
                    chmod 644 file; cat file; chmod 755 denied; chmod 700 denied/deep; cat denied/deep/file; chmod 700 below; ls below
                    """)
                #expect(outcome.status == 0, "\(outcome.errors)")
                #expect(outcome.output == "file\ndeep\nx\n")
            }
        }

        @Test(
            "FOLDER-8: what an ordinary user changes in and around a read-only directory reaches the source",
            .ordinaryUser)
        func stored() async throws {
            try await OrdinaryUser.run { user in
                func check(_ line: String) async throws {
                    let outcome = try await user.shell("set -e; " + line)
                    #expect(outcome.status == 0, "\(line): \(outcome.output)\(outcome.errors)")
                }
                let settled = """
                    yonder wait --timeout 20 && diff -r "$SOURCE" "$MOUNT"
                    for place in "$SOURCE" "$MOUNT"; do (cd "$place" && find . -printf '%P %m %TY\\n' | sort) > "$HOME/$(basename "$place").list"; done
                    diff "$HOME/source.list" "$HOME/mount.list"
                    """
                try await check("yonder mount \"$SOURCE\" \"$MOUNT\"")
                // Made read-only at once, as archives with such directories are unpacked.
                try await check(
                    """
                    cd "$MOUNT"; mkdir -p made/sub; for i in $(seq 30); do echo $i > made/sub/$i; done
                    ln -s 3 made/sub/link; chmod 500 made/sub; chmod 550 made; cd /; \(settled)
                    """)
                try await check(
                    "stat -c %a \"$SOURCE/made/sub\" | grep -qx 500; echo changed > \"$MOUNT/made/sub/7\"; \(settled)")
                try await check(
                    """
                    cd "$MOUNT/made"; chmod u+w sub; rm sub/1; mv sub/2 sub/two; mkdir sub/new; chmod u-w sub; cd /; \(settled)
                    """)
                // Without the right to search a directory nothing in it can be looked up, whatever is still to be sent there.
                for mode in ["000", "200", "400", "600"] {
                    try await check(
                        """
                        cd "$MOUNT"; mkdir -p p/q/r; echo old > p/q/old; echo gone > p/q/gone; yonder wait --timeout 20
                        echo new > p/q/new; echo changed > p/q/old; rm p/q/gone; mv p/q/r p/r; chmod \(mode) p/q; chmod \(mode) p; cd /
                        yonder wait --timeout 20; yonder pause mount; for place in "$SOURCE" "$MOUNT"; do
                            stat -c %a "$place/p" | grep -x \(Int(mode) ?? 0); chmod 700 "$place/p"
                            stat -c %a "$place/p/q" | grep -x \(Int(mode) ?? 0); chmod 700 "$place/p/q"
                        done; yonder resume mount; \(settled); rm -r "$MOUNT/p"; yonder wait --timeout 20
                        """)
                }
                try await check(
                    "chmod -R u+w \"$MOUNT/made\"; rm -r \"$MOUNT/made\"; \(settled); ls -A \"$SOURCE\" | wc -l | grep -qx 0"
                )
            }
        }
    }
}
