import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { Http2Connection } from '@wheelhouse/http2';
import {
  type Exchange,
  type OnExchange,
  observeFaults,
  type Random,
  randomOf,
  silentLogger,
  systemClock,
} from '@wheelhouse/machinery';
import { defaultHttpLimits, Http2Exchange, ServerCore } from '@wheelhouse/server/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  block,
  flags,
  frame,
  getFields,
  headers,
  postFields,
  prefaceBytes,
  settings,
  type,
  words,
} from './http2-raw.ts';

/**
 * Sessions of random frames fed directly into a connection, without a network: client data must
 * never cause an exception, hang, or internal failure, and the output must consist of frames within
 * the windows.
 */

const seed = Number(process.env['SEED'] ?? Date.now() % 1_000_000);

const handlerFault = new Error('a handler fails');
/** Faults of the session under test, except those of its handler. */
const faults: unknown[] = [];
let stopObserving = () => {};
beforeAll(() => {
  stopObserving = observeFaults((fault) => {
    if (fault.error !== handlerFault) faults.push(fault);
  });
});
afterAll(() => stopObserving());

/** A socket that accepts writes at random times, and keeps the frames. */
class FakeSocket extends EventEmitter {
  writable = true;
  destroyed = false;
  readonly remoteAddress = '127.0.0.1';
  readonly #random: Random;
  readonly #taker: (bytes: Buffer) => void;
  #late: (() => void)[] = [];

  constructor(random: Random, taker: (bytes: Buffer) => void) {
    super();
    this.#random = random;
    this.#taker = taker;
  }

  write(bytes: Buffer, done: (error?: Error) => void): void {
    if (!this.writable) expect(this.writable).toBe(true);
    this.#taker(bytes);
    const isLate = this.#random.chance(0.2) || this.#late.length > 0;
    if (!isLate) queueMicrotask(done);
    else this.#late.push(done);
  }

  /** The test decides when bytes arrive. */
  isPaused(): boolean {
    return true;
  }

  /** Accepts the delayed writes. */
  drain(): void {
    const late = this.#late;
    this.#late = [];
    for (const done of late) done();
  }

  end(): void {
    this.writable = false;
  }

  destroy(): void {
    if (this.destroyed) return;
    this.writable = false;
    this.destroyed = true;
    queueMicrotask(() => this.emit('close'));
  }
}

/** A client's view of the windows that it granted; throws if the server exceeds them. */
class Windows {
  connection = 65_535;
  initial = 65_535;
  readonly #streams = new Map<number, number>();
  #rest: Buffer = Buffer.alloc(0);
  readonly codes: number[] = [];
  #frameBytesMax = 16_384;

  opened(stream: number): void {
    this.#streams.set(stream, this.initial);
  }

  widen(stream: number, by: number): void {
    if (stream === 0) this.connection += by;
    else this.#streams.set(stream, (this.#streams.get(stream) ?? 0) + by);
  }

  move(initial: number): void {
    for (const [stream, window] of this.#streams) {
      this.#streams.set(stream, window + initial - this.initial);
    }
    this.initial = initial;
  }

  /** Allows the frame sizes that the client may request (setting 5) somewhere in its bytes. */
  allowFrameSizes(bytes: Buffer): void {
    for (let at = bytes.indexOf('\0\x05'); at >= 0; at = bytes.indexOf('\0\x05', at + 1)) {
      const size = at + 6 <= bytes.length ? bytes.readUInt32BE(at + 2) : 0;
      if (size < 2 ** 24) this.#frameBytesMax = Math.max(this.#frameBytesMax, size);
    }
  }

  /** @param strict whether the windows are known, because the client has sent only valid frames */
  take(bytes: Buffer, strict: boolean): void {
    let rest = Buffer.concat([this.#rest, bytes]);
    while (rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
      const length = rest.readUIntBE(0, 3);
      // Calling `expect` for each frame takes longer than sending it.
      if (length > this.#frameBytesMax) expect(length).toBeLessThanOrEqual(this.#frameBytesMax);
      const frameType = rest.readUInt8(3);
      if (frameType > type.continuation) expect(frameType).toBeLessThanOrEqual(type.continuation);
      if (frameType === type.goAway) this.codes.push(rest.readUInt32BE(13));
      if (frameType === type.data && strict) this.#data(rest.readUInt32BE(5), length);
      rest = rest.subarray(9 + length);
    }
    this.#rest = rest;
  }

  #data(stream: number, bytes: number): void {
    const window = (this.#streams.get(stream) ?? 0) - bytes;
    this.#streams.set(stream, window);
    this.connection -= bytes;
    const left = Math.min(window, this.connection);
    if (bytes > 0 && left < 0) expect(left).toBeGreaterThanOrEqual(0);
  }
}

/** The bytes of all bodies. */
const zeros = Buffer.alloc(400_000);

/**
 * Answers like typical handlers: immediately or later, whole or streamed, with or without reading
 * the body.
 */
function handler(random: Random): (exchange: Exchange) => unknown {
  const answer = (exchange: Exchange) => {
    const bytes = random.pick([0, 1, 100, 20_000, 400_000]);
    exchange.send({ status: 200, headers: {}, body: zeros.subarray(0, bytes) });
  };
  return async (exchange) => {
    exchange.onAbort(() => {});
    const how = random.below(7);
    if (how === 0) return answer(exchange);
    if (how === 1) return undefined;
    if (how === 2) throw handlerFault;
    if (how === 3) {
      await exchange.body(random.pick([0, 10, 100_000])).catch(() => {});
      return answer(exchange);
    }
    await new Promise((resolve) => setImmediate(resolve));
    if (how === 4) return answer(exchange);
    const stream = exchange.stream({ status: 200, headers: { 'x-a': 'b' } });
    for (let piece = random.below(20); piece > 0; piece -= 1) stream.write(zeros.subarray(0, 9000));
    if (how === 5) stream.end();
    if (random.chance(0.1)) stream.destroy();
    return undefined;
  };
}

/** The frames of a well-behaved client. */
function honestFrames(random: Random): Buffer[] {
  const frames = [prefaceBytes, settings()];
  let next = 1;
  const open: number[] = [];
  const acts: (() => Buffer[])[] = [
    () => {
      next += 2;
      return [headers(next - 2, getFields)];
    },
    () => {
      open.push(next);
      next += 2;
      const parts = block([...postFields, ['x-a', 'v'.repeat(random.below(300))]]);
      const cut = random.below(parts.length);
      if (random.chance(0.5)) return [frame(type.headers, flags.endHeaders, next - 2, parts)];
      return [
        frame(type.headers, 0, next - 2, parts.subarray(0, cut)),
        frame(type.continuation, flags.endHeaders, next - 2, parts.subarray(cut)),
      ];
    },
    () => {
      const index = random.below(open.length);
      const stream = open[index];
      if (stream === undefined) return [];
      const isLast = random.chance(0.3);
      if (isLast) open.splice(index, 1);
      const flag = isLast ? flags.endStream : 0;
      return [frame(type.data, flag, stream, Buffer.alloc(random.below(3000)))];
    },
    () => {
      const stream = open.pop();
      return stream === undefined ? [] : [frame(type.reset, 0, stream, words(8))];
    },
    () => [frame(type.ping, 0, 0, 'ABCDEFGH')],
    () => {
      const by = 1 + random.below(100_000);
      const stream = random.chance(0.5) ? 0 : (open.at(-1) ?? 0);
      return [frame(type.window, 0, stream, words(by))];
    },
    () => {
      const initial = random.below(200_000);
      return [settings([4, initial])];
    },
    () => [frame(type.priority, 0, 2 * random.below(50) + 1, Buffer.alloc(5))],
  ];
  for (let count = 10 + random.below(40); count > 0; count -= 1) {
    frames.push(Buffer.concat(random.pick(acts)()));
  }
  return frames;
}

function mutated(frames: readonly Buffer[], random: Random): Buffer[] {
  const made: Buffer[] = frames.map((bytes) => Buffer.from(bytes));
  for (let count = 1 + random.below(4); count > 0; count -= 1) {
    // Another test covers earlier positions; here they would end most sessions at once.
    const at = 2 + random.below(made.length - 2);
    const bytes = made[at];
    if (bytes === undefined || bytes.length === 0) continue;
    const how = random.below(6);
    if (how === 0) bytes[random.below(bytes.length)] = random.below(256);
    else if (how === 1) made.splice(at, 1);
    else if (how === 2) made.splice(at, 0, made[2 + random.below(made.length - 2)] ?? bytes);
    else if (how === 3) made[at] = bytes.subarray(0, random.below(bytes.length));
    else if (how === 4) bytes[3 + random.below(2)] = random.below(16);
    else made.splice(at, 0, noise(random));
  }
  return made;
}

function noise(random: Random): Buffer {
  const payload = Buffer.from(Array.from({ length: random.below(40) }, () => random.below(256)));
  if (random.chance(0.3)) return payload;
  const kind = random.chance(0.5) ? type.headers : random.below(11);
  return frame(kind, random.pick([0, 1, 4, 5, 8, 13, 0x25]), random.below(60), payload);
}

function startSession(random: Random, taker: (bytes: Buffer) => void) {
  faults.length = 0;
  const logger = {
    ...silentLogger,
    error: (message: string, fields?: object) => {
      if (message !== 'request handler failed') faults.push({ message, ...fields });
    },
  };
  const core = new ServerCore({
    clock: systemClock,
    limits: { ...defaultHttpLimits, streamsPerConnectionMax: 20 },
    logger,
    onExchange: handler(random) as OnExchange,
  });
  const socket = new FakeSocket(random, taker);
  const onClosed = (exchange: Http2Exchange): void => core.end(exchange);
  new Http2Connection({
    socket: socket as unknown as Socket,
    core,
    onRequest: (stream, peer) =>
      core.begin(new Http2Exchange({ stream, connection: peer, core, onClosed })),
  });
  return { core, socket, faults };
}

/** Feeds the bytes in chunks of random lengths. */
function feed(socket: FakeSocket, bytes: Buffer, random: Random): void {
  for (let at = 0; at < bytes.length; ) {
    const end = Math.min(bytes.length, at + 1 + random.below(random.pick([10, 500, 20_000])));
    socket.emit('data', Buffer.from(bytes.subarray(at, end)));
    at = end;
  }
}

/** Runs all or some of the server's pending work. */
async function pause(socket: FakeSocket, random: Random): Promise<void> {
  if (random.chance(0.3)) await new Promise((resolve) => setImmediate(resolve));
  if (random.chance(0.3)) socket.drain();
}

async function settle(socket: FakeSocket): Promise<void> {
  for (let turn = 0; turn < 6; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    socket.drain();
  }
}

describe(`sessions of seed ${seed}`, () => {
  test('valid: the server stays within the windows and reports no error', async ({ signal }) => {
    for (let round = 0; round < 300 && !signal.aborted; round += 1) {
      const random = randomOf(seed * 1000 + round);
      const windows = new Windows();
      const { core, socket, faults } = startSession(random, (bytes) => windows.take(bytes, true));
      for (const bytes of honestFrames(random)) {
        learn(windows, bytes);
        feed(socket, bytes, random);
        await pause(socket, random);
      }
      await settle(socket);
      expect(windows.codes, `round ${round}`).toEqual([]);
      expect(faults, `round ${round}`).toEqual([]);
      socket.destroy();
      await settle(socket);
      expect(core.inFlight, `round ${round}`).toBe(0);
    }
  }, 300_000);

  test('mutated: nothing throws, nothing hangs, and no error is ours', async ({ signal }) => {
    for (let round = 0; round < 1500 && !signal.aborted; round += 1) {
      const random = randomOf(seed * 2000 + round);
      const windows = new Windows();
      const { core, socket, faults } = startSession(random, (bytes) => windows.take(bytes, false));
      const frames = mutated(honestFrames(random), random);
      windows.allowFrameSizes(Buffer.concat(frames));
      for (const bytes of frames) {
        feed(socket, bytes, random);
        await pause(socket, random);
      }
      await settle(socket);
      expect(faults, `round ${round}`).toEqual([]);
      expect(windows.codes, `round ${round}`).not.toContain(2);
      socket.destroy();
      await settle(socket);
      expect(core.inFlight, `round ${round}`).toBe(0);
    }
  }, 300_000);
});

/** The limits that a valid frame announces to the server. */
function learn(windows: Windows, bytes: Buffer): void {
  if (bytes === prefaceBytes) return;
  for (let at = 0; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3)) {
    const stream = bytes.readUInt32BE(at + 5);
    if (bytes[at + 3] === type.headers) windows.opened(stream);
    if (bytes[at + 3] === type.window) windows.widen(stream, bytes.readUInt32BE(at + 9));
    if (bytes[at + 3] === type.settings && bytes.readUIntBE(at, 3) > 0) {
      windows.move(bytes.readUInt32BE(at + 11));
    }
  }
}
