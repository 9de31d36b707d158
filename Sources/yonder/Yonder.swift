import ArgumentParser
import Control
import Glibc
import Syscalls

/// The command line.
@main
struct Yonder: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "yonder",
        abstract: "Mounts a remote as a folder: everything is there at once, and takes no disk until it is read.",
        version: Version.current,
        subcommands: [
            Mount.self, Unmount.self, Domains.self, Status.self, List.self, Info.self, Why.self, Download.self,
            Upload.self,
            Evict.self, MakeDirectory.self, Rename.self, Move.self, Add.self, Delete.self, Favorite.self, Tag.self,
            Used.self,
            Pin.self, Unpin.self, Pending.self, Wait.self, Signal.self, Retry.self, Pause.self, Resume.self,
            Allow.self, Conflicts.self, Trash.self, Check.self, Reimport.self, Import.self, Remove.self, Events.self,
            Run.self,
            Shutdown.self,
        ])

    static func main() async {
        // A reader of our output that has gone is an error to write to, not a signal.
        signal(SIGPIPE, SIG_IGN)
        await main(Machine.arguments)
    }
}
