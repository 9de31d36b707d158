import FileProvider
import Testing

@Suite struct FreeNumberTests {
    @Test(
        "a free number above very many that are taken is found with few questions",
        arguments: [0, 1, 2, 3, 100, 65_536])
    func few(taken: Int) {
        var asked = 0
        let number = FreeNumber.search { number in
            asked += 1
            return number <= taken
        }
        #expect(number == taken + 1)
        #expect(asked <= 40)
        #expect(FreeNumber.search(from: 3) { $0 <= taken } == max(taken + 1, 3))
    }
}
