import Glibc
import Keeper

// The keeper's program; see `Keeper`.

guard let options = Options(Array(CommandLine.arguments.dropFirst())) else {
    Log.write(Options.usage)
    exit(64)
}
if options.isInBackground { setsid() }
guard var keeper = Keeper(options) else {
    Log.write("the kernel refuses a socket: error \(errno)")
    exit(1)
}
exit(keeper.run())
