import type { Exchange } from '@wheelhouse/machinery';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import { check, type Http2Case } from './http2-cases.ts';
import {
  block,
  code,
  type Fields,
  flags,
  frame,
  getFields,
  headers,
  postFields,
  type RawServer,
  settings,
  startRawServer,
  type,
  words,
} from './http2-raw.ts';

/**
 * Frames in each state of a stream, and representations of fields: the checks of h2spec beyond
 * `http2-errors.test.ts` and `http2-flow.test.ts`.
 */

const raw = await untilEnd(
  startRawServer(async (exchange: Exchange) => {
    const body = await exchange.body(1 << 20);
    if (exchange.url === '/wait') return;
    exchange.send({ status: 200, headers: {}, body: Buffer.from(`<${body}>`) });
  }),
);

const waitFields: Fields = [...getFields.filter(([name]) => name !== ':path'), [':path', '/wait']];
/** Half-closed by the client; the server does not answer. */
const halfClosed = headers(1, waitFields);
const reset = frame(type.reset, flags.none, 1, words(code.cancel));
const requested = headers(1, postFields, flags.endHeaders);
const next = headers(3, getFields);
const split = block(getFields);
const firstPart = split.subarray(0, 5);
const secondPart = split.subarray(5);
const empty = frame(type.data, flags.endStream, 1);
/** A dependency and a weight less 1. */
const priority = (on: number, weight: number) => Buffer.concat([words(on), Buffer.from([weight])]);
const exclusive = 0x80000000;
const unknownCode = 0xff;

const states: readonly Http2Case[] = [
  {
    what: 'half-closed: WINDOW_UPDATE',
    sends: [halfClosed, frame(type.window, 0, 1, words(100)), next],
    answers: [3],
  },
  {
    what: 'half-closed: PRIORITY',
    sends: [halfClosed, frame(type.priority, 0, 1, priority(0, 255)), next],
    answers: [3],
  },
  { what: 'half-closed: RST_STREAM', sends: [halfClosed, reset, next], answers: [3] },
  {
    what: 'half-closed: CONTINUATION',
    sends: [halfClosed, frame(type.continuation, flags.endHeaders, 1, split)],
    goAway: code.protocol,
  },
  {
    what: 'reset: PRIORITY',
    sends: [halfClosed, reset, frame(type.priority, 0, 1, priority(0, 0)), next],
    answers: [3],
  },
  {
    what: 'reset: CONTINUATION',
    sends: [halfClosed, reset, frame(type.continuation, flags.endHeaders, 1, split)],
    goAway: code.protocol,
  },
  {
    what: 'open: CONTINUATION behind DATA',
    sends: [
      requested,
      frame(type.data, 0, 1, 'x'),
      frame(type.continuation, flags.endHeaders, 1, split),
    ],
    goAway: code.protocol,
  },
  {
    what: 'open: CONTINUATION behind the last CONTINUATION',
    sends: [
      frame(type.headers, flags.endStream, 1, firstPart),
      frame(type.continuation, flags.endHeaders, 1, secondPart),
      frame(type.continuation, flags.endHeaders, 1, split),
    ],
    goAway: code.protocol,
  },
  {
    what: 'within a header block: PRIORITY',
    sends: [
      frame(type.headers, flags.endStream, 1, firstPart),
      frame(type.priority, 0, 1, priority(0, 255)),
    ],
    goAway: code.protocol,
  },
  {
    what: 'within a header block: HEADERS of another stream',
    sends: [frame(type.headers, flags.endStream, 1, firstPart), next],
    goAway: code.protocol,
  },
  {
    what: 'within a header block: DATA',
    sends: [frame(type.headers, 0, 1, firstPart), empty],
    goAway: code.protocol,
  },
  {
    what: 'any: RST_STREAM with an unknown code',
    sends: [halfClosed, frame(type.reset, 0, 1, words(unknownCode)), next],
    answers: [3],
  },
  {
    what: 'any: GOAWAY with an unknown code',
    sends: [frame(type.goAway, 0, 0, words(0, unknownCode)), headers(1, getFields)],
    answers: [1],
  },
];

/** After a complete answer, the stream is closed on both sides, and the server remembers it. */
const afterAnswer: readonly Http2Case[] = [
  { what: 'DATA', sends: [frame(type.data, 0, 1, 'x')], goAway: code.streamClosed },
  { what: 'HEADERS', sends: [headers(1, getFields)], goAway: code.streamClosed },
  {
    what: 'CONTINUATION',
    sends: [frame(type.continuation, flags.endHeaders, 1, split)],
    goAway: code.protocol,
  },
  { what: 'PRIORITY', sends: [frame(type.priority, 0, 1, priority(0, 255)), next], answers: [3] },
  { what: 'WINDOW_UPDATE', sends: [frame(type.window, 0, 1, words(1)), next], answers: [3] },
  { what: 'RST_STREAM', sends: [reset, next], answers: [3] },
];

const priorities: readonly (readonly [what: string, payload: Buffer])[] = [
  ['the least weight', priority(0, 0)],
  ['the largest weight', priority(0, 255)],
  ['a dependency', priority(1, 15)],
  ['an exclusive dependency', priority(exclusive + 1, 15)],
];

const huffmanKey = '8825a849e95ba97d7f';
const huffmanValue = '8925a849e95bb8e8b4bf';
const plainKey = '0a637573746f6d2d6b6579';
const plainValue = '0c637573746f6d2d76616c7565';

/** Encodings of one field each, in hexadecimal; indexed names are `user-agent`. */
const representations: readonly (readonly [what: string, bytes: string])[] = [
  ['an indexed field', '90'],
  ['incremental indexing, indexed name', `7a${plainValue}`],
  ['incremental indexing, indexed name, Huffman', `7a${huffmanValue}`],
  ['incremental indexing, new name', `40${plainKey}${plainValue}`],
  ['incremental indexing, new name, Huffman', `40${huffmanKey}${huffmanValue}`],
  ['no indexing, indexed name', `0f2b${plainValue}`],
  ['no indexing, indexed name, Huffman', `0f2b${huffmanValue}`],
  ['no indexing, new name', `00${plainKey}${plainValue}`],
  ['no indexing, new name, Huffman', `00${huffmanKey}${huffmanValue}`],
  ['never indexed, indexed name', `1f2b${plainValue}`],
  ['never indexed, indexed name, Huffman', `1f2b${huffmanValue}`],
  ['never indexed, new name', `10${plainKey}${plainValue}`],
  ['never indexed, new name, Huffman', `10${huffmanKey}${huffmanValue}`],
];
const sizeUpdates: readonly (readonly [what: string, bytes: string])[] = [
  ['an update of the table size', '20'],
  ['two updates of the table size', '203fe11f'],
];

describe('TRUST-1: frames in every state of a stream', () => {
  test.each(states)('$what', async (http2Case) => {
    const client = await raw.connect();
    client.greet();
    await check(client, http2Case);
  });

  test.each(afterAnswer)('closed: $what', async (http2Case) => {
    const client = await raw.connect();
    client.greet();
    await check(client, { what: 'a request', sends: [headers(1, getFields)], answers: [1] });
    await check(client, http2Case);
  });

  test.each(priorities)('PRIORITY with %s', async (_, payload) => {
    const client = await raw.connect();
    client.greet();
    const sends = [halfClosed, frame(type.priority, 0, 3, payload), next];
    await check(client, { what: 'a request', sends, answers: [3] });
  });

  test('PRIORITY on an idle stream does not open it', async () => {
    const client = await raw.connect();
    client.greet();
    const sends = [frame(type.priority, 0, 5, priority(0, 15)), next];
    await check(client, { what: 'a request', sends, answers: [3] });
  });
});

describe('TRUST-1: every representation of a header field', () => {
  const names = ['custom-key', 'user-agent', 'accept-encoding'];
  let shown: readonly (string | undefined)[] = [];
  let reading: RawServer;
  beforeAll(async () => {
    reading = await startRawServer((exchange: Exchange) => {
      shown = names.map((name) => exchange.header(name));
      exchange.send({ status: 200, headers: {}, body: Buffer.from('ok') });
    });
  });
  afterAll(() => reading.close());

  test.each(representations)('%s', async (_, bytes) => {
    const client = await reading.connect();
    client.greet();
    const fields = Buffer.concat([split, Buffer.from(bytes, 'hex')]);
    const sends = [frame(type.headers, flags.whole, 1, fields)];
    await check(client, { what: 'a request', sends, answers: [1] });
    const value = bytes === '90' ? 'gzip, deflate' : 'custom-value';
    expect(shown.filter((text) => text !== undefined)).toEqual([value]);
  });

  test.each(sizeUpdates)('%s', async (_, bytes) => {
    const client = await reading.connect();
    client.greet();
    const fields = Buffer.concat([Buffer.from(bytes, 'hex'), split]);
    const sends = [frame(type.headers, flags.whole, 1, fields)];
    await check(client, { what: 'a request', sends, answers: [1] });
  });
});

test('TRUST-1: the last value of a repeated setting applies', async () => {
  const client = await raw.connect();
  client.greet();
  client.send(settings([4, 100], [4, 1]), headers(1, getFields));
  const first = await client.of(type.data, 1);
  expect(first.payload.length).toBe(1);
  client.send(frame(type.window, 0, 1, words(100)));
  const last = await client.frame(
    (received) => received.type === type.data && received.flags === flags.endStream,
  );
  expect(last.payload.length).toBe(1);
});
