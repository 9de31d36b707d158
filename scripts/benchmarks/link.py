"""A line to somewhere far away: a TCP relay on loopback that delays what passes, and lets so much of it pass a second.

usage: python3 link.py LISTEN TO ROUND-TRIP-MS MEGABITS
Prints a line when it listens, and runs until it is ended.
"""

import asyncio
import sys
import time


class Direction:
    """One way of the line, shared by all connections: how long it takes, and when it is free again."""

    def __init__(self, delay, bytes_per_second):
        self.delay = delay
        self.rate = bytes_per_second
        self.free_at = 0.0

    def arrival(self, size):
        """When a chunk that is handed in now comes out at the other end."""
        start = max(self.free_at, time.monotonic())
        self.free_at = start + size / self.rate
        return self.free_at + self.delay


async def carry(reader, writer, direction):
    under_way = asyncio.Queue(maxsize=512)

    async def deliver():
        while True:
            arrival, chunk = await under_way.get()
            wait = arrival - time.monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
            if not chunk:
                if writer.can_write_eof():
                    writer.write_eof()
                return
            writer.write(chunk)
            await writer.drain()

    delivery = asyncio.create_task(deliver())
    try:
        while True:
            chunk = await reader.read(1 << 16)
            arrival = direction.arrival(len(chunk))
            # What waits for its turn waits at the sender's, as on a real line.
            ahead = arrival - direction.delay - time.monotonic()
            if ahead > 0.02:
                await asyncio.sleep(ahead - 0.02)
            await under_way.put((arrival, chunk))
            if not chunk:
                break
        await delivery
    except OSError:
        pass
    finally:
        delivery.cancel()
        writer.close()


async def main(listen, to, round_trip, megabits):
    ways = [Direction(round_trip / 2000, megabits * 125_000) for _ in range(2)]

    async def serve(reader, writer):
        try:
            # Connecting takes a round trip, too.
            await asyncio.sleep(round_trip / 1000)
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", to)
        except OSError:
            writer.close()
            return
        await asyncio.gather(carry(reader, far_writer, ways[0]), carry(far_reader, writer, ways[1]))

    server = await asyncio.start_server(serve, "127.0.0.1", listen, limit=1 << 20)
    print("listening", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    try:
        asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])))
    except KeyboardInterrupt:
        pass
