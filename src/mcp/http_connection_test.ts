import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { SysError } from "../base/errors.ts";
import { boundedBody } from "./http_connection.ts";

/** The body that a server on loopback gives with these headers, or the code of the error. */
async function bodyOf(
  body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>,
  bytesMax: number,
  headers: { [name: string]: string } = {},
): Promise<number | string> {
  await using server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {} },
    () => new Response(body, { headers }),
  );
  const response = await fetch(`http://127.0.0.1:${server.addr.port}/`);
  try {
    return (await boundedBody(response, bytesMax)).length;
  } catch (thrown) {
    return thrown instanceof SysError ? thrown.code : String(thrown);
  }
}

Deno.test("[B47] a body is taken up to the cap, whether its length is told, or not, or is that of something packed", async () => {
  const bytes = new Uint8Array(10_000);
  const packed = new Uint8Array(gzipSync(bytes));
  const stream = () => new Blob([bytes]).stream();
  const gzip = { "content-encoding": "gzip" };
  assert.ok(packed.length < 1_000);
  assert.deepEqual(
    [
      await bodyOf(bytes, 10_000),
      await bodyOf(bytes, 9_999),
      await bodyOf(stream(), 10_000),
      await bodyOf(stream(), 9_999),
      await bodyOf(packed, 10_000, gzip),
      await bodyOf(packed, 9_999, gzip),
    ],
    [10_000, "RESOURCE_EXHAUSTED", 10_000, "RESOURCE_EXHAUSTED", 10_000, "RESOURCE_EXHAUSTED"],
  );
});
