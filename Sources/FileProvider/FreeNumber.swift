/// The search for a number that is free. One after another, very many things with one name would cost the square of their number.
package enum FreeNumber {
    /// A free number, found by doubling and halving: the first one if all below it are taken.
    package static func search(from first: Int = 1, isTaken: (Int) throws -> Bool) rethrows -> Int {
        var (taken, free) = (first - 1, first)
        var step = 1
        while try isTaken(free) {
            (taken, free) = (free, free + step)
            step *= 2
        }
        while free - taken > 1 {
            let middle = taken + (free - taken) / 2
            if try isTaken(middle) { taken = middle } else { free = middle }
        }
        return free
    }
}
