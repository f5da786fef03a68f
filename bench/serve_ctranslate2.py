"""A minimal asynchronous server before CTranslate2: POST /translate {"text": "..."} answers {"text": "..."}.

    python serve_ctranslate2.py DIRECTORY sentencepiece.model --port 8081 --beam 5 --compute int8

DIRECTORY comes from convert_ctranslate2.py. It knows just enough of HTTP/1.1 for wrk: requests with Content-Length on
connections that stay open. Requests that wait are translated together (--mode batch): as soon as the translator is free,
after a pause of --wait milliseconds in which more may come; or each is given to the translator alone (--mode each), which
works on --inter of them at a time.
"""

import argparse
import asyncio
import json

import ctranslate2
import sentencepiece

MOST = 64  # requests translated together


class Server:
    def __init__(self, options):
        self.options = options
        self.pieces = sentencepiece.SentencePieceProcessor(model_file=options.pieces)
        self.translator = ctranslate2.Translator(options.directory, device="cpu", compute_type=options.compute,
                                                 inter_threads=options.inter, intra_threads=options.intra)
        self.waiting = asyncio.Queue()

    def translate(self, texts):
        results = self.translator.translate_batch(
            self.pieces.encode(texts, out_type=str), beam_size=self.options.beam, length_penalty=1.0,
            max_batch_size=-(-len(texts) // self.options.inter), max_input_length=0)
        return self.pieces.decode([result.hypotheses[0] for result in results])

    async def work(self):
        loop = asyncio.get_running_loop()
        while True:
            batch = [await self.waiting.get()]
            if self.options.wait:
                await asyncio.sleep(1e-3 * self.options.wait)
            while len(batch) < MOST and not self.waiting.empty():
                batch.append(self.waiting.get_nowait())
            texts = await loop.run_in_executor(None, self.translate, [text for text, _ in batch])
            for (_, future), text in zip(batch, texts):
                future.set_result(text)

    async def answer(self, text):
        loop = asyncio.get_running_loop()
        if self.options.mode == "each":
            return (await loop.run_in_executor(None, self.translate, [text]))[0]
        future = loop.create_future()
        self.waiting.put_nowait((text, future))
        return await future

    async def serve(self, reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
                text = json.loads(await reader.readexactly(length))["text"]
                body = json.dumps({"text": await self.answer(text)}).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" %
                             (len(body), body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def run(self):
        worker = asyncio.create_task(self.work())
        server = await asyncio.start_server(self.serve, "127.0.0.1", self.options.port)
        print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", flush=True)
        await worker


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", help="a CTranslate2 model")
    parser.add_argument("pieces", help="the model of SentencePiece")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--compute", default="float32")
    parser.add_argument("--inter", type=int, default=1, help="batches at the same time")
    parser.add_argument("--intra", type=int, default=2, help="threads of each batch")
    parser.add_argument("--mode", choices=("batch", "each"), default="batch")
    parser.add_argument("--wait", type=float, default=3.0, help="milliseconds")
    asyncio.run(Server(parser.parse_args()).run())


if __name__ == "__main__":
    main()
