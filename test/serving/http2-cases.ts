import { expect } from 'vitest';
import { flags, type RawClient, type } from './http2-raw.ts';

/** Frames of a client, and the expected reaction of the server. */
export interface Http2Case {
  readonly what: string;
  readonly sends: readonly Buffer[];
  /** The last frame is GOAWAY with this code. */
  readonly goAway?: number;
  /** RST_STREAM of this stream with this code; the connection stays open. */
  readonly reset?: readonly [stream: number, code: number];
  /** The streams that are answered with 200 and complete bodies. */
  readonly answers?: readonly number[];
}

/** Sends the frames of a case and compares the server's reaction with the expected one. */
export async function check(client: RawClient, http2Case: Http2Case): Promise<void> {
  client.send(...http2Case.sends);
  if (http2Case.reset !== undefined) {
    const [stream, wanted] = http2Case.reset;
    const reset = await client.of(type.reset, stream);
    expect(reset.payload.readUInt32BE(0)).toBe(wanted);
  }
  for (const stream of http2Case.answers ?? []) {
    await client.frame(
      (got) => got.type === type.data && got.stream === stream && got.flags === flags.endStream,
    );
    const head = await client.of(type.headers, stream);
    expect(head.payload[0]).toBe(0x88);
  }
  if (http2Case.goAway === undefined) {
    await client.ping();
    expect(client.received.some((got) => got.type === type.goAway)).toBe(false);
    return;
  }
  const goAway = await client.of(type.goAway, 0);
  expect(goAway.payload.readUInt32BE(4)).toBe(http2Case.goAway);
  await client.until(() => client.closed);
  expect(client.received.at(-1)).toBe(goAway);
}
