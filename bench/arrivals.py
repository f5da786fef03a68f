"""Requests that arrive by themselves, as users' do, whether earlier ones are answered or not (open loop): at random times
of a given mean rate, the same for every server, each over a connection of its own or one that is free again. A server
that is too slow therefore makes waiting longer, while a loop of fixed connections (wrk) would only ask less often.

The load is bounded: at most MOST requests wait at a time, those above are counted as refused, and a run ends TIMEOUT
seconds after its last arrival."""

import asyncio
import random
import time
from urllib.parse import urlsplit

MOST = 512
TIMEOUT = 20.0


class Run:
    """One run at one rate."""

    def __init__(self, url, bodies, seed):
        parts = urlsplit(url)
        self.host, self.port = parts.hostname, parts.port
        self.bodies, self.random = bodies, random.Random(seed)
        self.free, self.waiting = [], 0
        self.times, self.refused, self.failed = [], 0, 0

    async def ask(self, body):
        reader, writer = self.free.pop() if self.free else await asyncio.open_connection(self.host, self.port)
        writer.write(b"POST /translate HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" %
                     (self.host.encode(), len(body), body))
        await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        await reader.readexactly(int(head.split(b"content-length:")[1].split(b"\r\n")[0]))
        if b" 200 " not in head.split(b"\r\n")[0]:
            raise ConnectionError(head.split(b"\r\n")[0].decode())
        self.free.append((reader, writer))

    async def request(self, body):
        begin = time.monotonic()
        try:
            await asyncio.wait_for(self.ask(body), TIMEOUT)
            self.times.append(time.monotonic() - begin)
        except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError, IndexError, ValueError):
            self.failed += 1
        finally:
            self.waiting -= 1

    async def arrive(self, rate, seconds):
        tasks, at, end = [], time.monotonic(), time.monotonic() + seconds
        while True:
            at += self.random.expovariate(rate)
            if at >= end:
                break
            await asyncio.sleep(max(0.0, at - time.monotonic()))
            if self.waiting >= MOST:
                self.refused += 1
                continue
            self.waiting += 1
            tasks.append(asyncio.create_task(self.request(self.random.choice(self.bodies))))
        await asyncio.gather(*tasks)
        for _, writer in self.free:
            writer.close()


def percentile(times, share):
    """The smallest time that is at least as long as this share of all."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1))]


def ask(url, bodies, rate, seconds, seed=1):
    """p50, p95 and p99 in seconds, and how many requests were answered, refused and failed."""
    run = Run(url, bodies, seed)
    asyncio.run(run.arrive(rate, seconds))
    found = {"answered": len(run.times), "refused": run.refused, "failed": run.failed}
    for share in (0.50, 0.95, 0.99):
        found[f"p{round(100 * share)}"] = percentile(run.times, share) if run.times else None
    return found
