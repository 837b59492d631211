import type { Exchange } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import { type Http2Case as Case, check } from './http2-cases.ts';
import {
  block,
  code,
  type Fields,
  flags,
  frame,
  getFields,
  headers,
  postFields,
  prefaceBytes,
  settings,
  startRawServer,
  type,
  words,
} from './http2-raw.ts';

/**
 * The errors of clients in RFC 9113 and RFC 7541 as a table: frames, and the expected reaction. The
 * cases include those of conformance suites for HTTP/2 servers.
 */

const raw = await untilEnd(
  startRawServer(async (exchange: Exchange) => {
    if (exchange.url === '/hang') return;
    const body = await exchange.body(1 << 20);
    exchange.send({ status: 200, headers: {}, body: Buffer.from(`<${body}>`) });
  }),
);

const hang = [
  [':method', 'POST'],
  [':scheme', 'https'],
  [':path', '/hang'],
] as const;
const open = headers(1, hang, flags.endHeaders);
const data = (stream: number, text: string, flag: number = flags.endStream) =>
  frame(type.data, flag, stream, text);
const whole = headers(1, getFields);
const split = block(getFields);
const firstPart = split.subarray(0, 5);
const secondPart = split.subarray(5);
const maximal = Buffer.alloc(16_384);
const tooLong = Buffer.alloc(16_385);

const connectionFaults: Case[] = [
  { what: 'no preface', sends: [Buffer.from('GET / HTTP/1.1\r\n\r\n')], goAway: code.protocol },
  {
    what: 'a first frame that is not SETTINGS',
    sends: [prefaceBytes, whole],
    goAway: code.protocol,
  },
  {
    what: 'an acknowledgement as the first frame',
    sends: [prefaceBytes, frame(type.settings, flags.ack, 0)],
    goAway: code.protocol,
  },
];

const frameFaults: Case[] = [
  {
    what: 'a frame over the limit',
    sends: [open, data(1, tooLong.toString())],
    goAway: code.frameSize,
  },
  {
    what: 'HEADERS over the limit',
    sends: [frame(type.headers, flags.whole, 1, tooLong)],
    goAway: code.frameSize,
  },
  {
    what: 'an unknown frame over the limit',
    sends: [frame(99, 0, 0, tooLong)],
    goAway: code.frameSize,
  },
  { what: 'an unknown frame', sends: [frame(99, 0xff, 7, 'x'), whole], answers: [1] },
  { what: 'an unknown flag', sends: [frame(type.ping, 0x16, 0, 'ABCDEFGH'), whole], answers: [1] },
  {
    what: 'the reserved bit of a stream',
    sends: [frame(type.headers, flags.whole, 0x80000001, split)],
    answers: [1],
  },
  {
    what: 'an unknown frame within a header block',
    sends: [frame(type.headers, 0, 1, firstPart), frame(99, 0, 0)],
    goAway: code.protocol,
  },

  { what: 'DATA of stream 0', sends: [data(0, 'x')], goAway: code.protocol },
  { what: 'DATA of an idle stream', sends: [data(1, 'x')], goAway: code.protocol },
  {
    what: 'DATA with more padding than payload',
    sends: [open, frame(type.data, flags.padded, 1, '\x05abc')],
    goAway: code.protocol,
  },
  {
    what: 'DATA with padding, and no byte for its length',
    sends: [open, frame(type.data, flags.padded, 1, '')],
    goAway: code.frameSize,
  },
  {
    what: 'padding as long as can be',
    sends: [
      headers(1, postFields, flags.endHeaders),
      frame(type.data, flags.padded | flags.endStream, 1, '\x03\0\0\0'),
    ],
    answers: [1],
  },

  { what: 'HEADERS of stream 0', sends: [headers(0, getFields)], goAway: code.protocol },
  { what: 'HEADERS of an even stream', sends: [headers(2, getFields)], goAway: code.protocol },
  {
    what: 'a stream below the last',
    sends: [headers(5, hang), headers(3, getFields)],
    goAway: code.protocol,
  },
  {
    what: 'HEADERS with more padding than payload',
    sends: [frame(type.headers, flags.whole | flags.padded, 1, `\xff${split.toString('latin1')}`)],
    goAway: code.protocol,
  },
  {
    what: 'HEADERS with padding and priority',
    sends: [
      frame(
        type.headers,
        flags.whole | flags.padded | flags.priority,
        1,
        Buffer.concat([Buffer.from([2]), words(9), Buffer.from([255]), split, Buffer.alloc(2)]),
      ),
    ],
    answers: [1],
  },
  {
    what: 'HEADERS too short for their priority',
    sends: [frame(type.headers, flags.whole | flags.priority, 1, 'abcd')],
    goAway: code.frameSize,
  },
  {
    what: 'HEADERS that depend on themselves',
    sends: [
      frame(
        type.headers,
        flags.whole | flags.priority,
        1,
        Buffer.concat([words(1), Buffer.from([9]), split]),
      ),
    ],
    goAway: code.protocol,
  },

  {
    what: 'PRIORITY of stream 0',
    sends: [frame(type.priority, 0, 0, 'abcde')],
    goAway: code.protocol,
  },
  {
    what: 'PRIORITY of a wrong length',
    sends: [frame(type.priority, 0, 1, 'abcd')],
    goAway: code.frameSize,
  },
  {
    what: 'PRIORITY of itself',
    sends: [frame(type.priority, 0, 1, Buffer.concat([words(1), Buffer.from([0])]))],
    goAway: code.protocol,
  },
  {
    what: 'PRIORITY of an idle stream',
    sends: [frame(type.priority, 0, 7, Buffer.alloc(5)), whole],
    answers: [1],
  },

  {
    what: 'RST_STREAM of stream 0',
    sends: [frame(type.reset, 0, 0, words(8))],
    goAway: code.protocol,
  },
  {
    what: 'RST_STREAM of an idle stream',
    sends: [frame(type.reset, 0, 1, words(8))],
    goAway: code.protocol,
  },
  {
    what: 'RST_STREAM of a wrong length',
    sends: [open, frame(type.reset, 0, 1, 'abc')],
    goAway: code.frameSize,
  },
  {
    what: 'RST_STREAM of a stream that is closed',
    sends: [
      open,
      frame(type.reset, 0, 1, words(8)),
      frame(type.reset, 0, 1, words(8)),
      headers(3, getFields),
    ],
    answers: [3],
  },

  { what: 'SETTINGS of a stream', sends: [frame(type.settings, 0, 1)], goAway: code.protocol },
  {
    what: 'SETTINGS of a wrong length',
    sends: [frame(type.settings, 0, 0, 'abc')],
    goAway: code.frameSize,
  },
  {
    what: 'an acknowledgement with a payload',
    sends: [frame(type.settings, flags.ack, 0, 'abcdef')],
    goAway: code.frameSize,
  },
  { what: 'ENABLE_PUSH of 2', sends: [settings([2, 2])], goAway: code.protocol },
  {
    what: 'INITIAL_WINDOW_SIZE of 2^31',
    sends: [settings([4, 2 ** 31])],
    goAway: code.flowControl,
  },
  { what: 'MAX_FRAME_SIZE below the least', sends: [settings([5, 16_383])], goAway: code.protocol },
  { what: 'MAX_FRAME_SIZE above the most', sends: [settings([5, 2 ** 24])], goAway: code.protocol },
  { what: 'an unknown setting', sends: [settings([0xaa, 1]), whole], answers: [1] },

  {
    what: 'PUSH_PROMISE',
    sends: [open, frame(type.push, flags.endHeaders, 1, words(2))],
    goAway: code.protocol,
  },
  { what: 'PING of a stream', sends: [frame(type.ping, 0, 1, 'ABCDEFGH')], goAway: code.protocol },
  {
    what: 'PING of a wrong length',
    sends: [frame(type.ping, 0, 0, 'ABCDEFG')],
    goAway: code.frameSize,
  },
  {
    what: 'an answer to no PING',
    sends: [frame(type.ping, flags.ack, 0, 'ABCDEFGH'), whole],
    answers: [1],
  },
  {
    what: 'GOAWAY of a stream',
    sends: [frame(type.goAway, 0, 1, words(0, 0))],
    goAway: code.protocol,
  },
  { what: 'GOAWAY too short', sends: [frame(type.goAway, 0, 0, words(0))], goAway: code.frameSize },
  {
    what: 'GOAWAY before a request',
    sends: [frame(type.goAway, 0, 0, words(0, 0)), whole],
    answers: [1],
  },

  {
    what: 'WINDOW_UPDATE of a wrong length',
    sends: [frame(type.window, 0, 0, 'abc')],
    goAway: code.frameSize,
  },
  {
    what: 'WINDOW_UPDATE by 0',
    sends: [frame(type.window, 0, 0, words(0))],
    goAway: code.protocol,
  },
  {
    what: 'WINDOW_UPDATE of a stream by 0',
    sends: [open, frame(type.window, 0, 1, words(0))],
    reset: [1, code.protocol],
  },
  {
    what: 'WINDOW_UPDATE of an idle stream',
    sends: [frame(type.window, 0, 1, words(1))],
    goAway: code.protocol,
  },
  {
    what: 'a window out of range',
    sends: [frame(type.window, 0, 0, words(0x7fffffff))],
    goAway: code.flowControl,
  },
  {
    what: 'the window of a stream out of range',
    sends: [open, frame(type.window, 0, 1, words(0x7fffffff))],
    reset: [1, code.flowControl],
  },
  {
    what: 'the window of a stream out of range by SETTINGS',
    sends: [open, frame(type.window, 0, 1, words(0x7fff0000)), settings([4, 0x7fffffff])],
    goAway: code.flowControl,
  },
  {
    what: 'WINDOW_UPDATE of a stream that is closed',
    sends: [
      open,
      frame(type.reset, 0, 1, words(8)),
      frame(type.window, 0, 1, words(1)),
      headers(3, getFields),
    ],
    answers: [3],
  },

  {
    what: 'CONTINUATION of nothing',
    sends: [frame(type.continuation, 4, 1, split)],
    goAway: code.protocol,
  },
  {
    what: 'CONTINUATION behind a whole block',
    sends: [open, frame(type.continuation, 4, 1, split)],
    goAway: code.protocol,
  },
  {
    what: 'CONTINUATION of another stream',
    sends: [frame(type.headers, 0, 1, firstPart), frame(type.continuation, 4, 3, secondPart)],
    goAway: code.protocol,
  },
  {
    what: 'CONTINUATION of stream 0',
    sends: [frame(type.headers, 0, 1, firstPart), frame(type.continuation, 4, 0, secondPart)],
    goAway: code.protocol,
  },
  {
    what: 'another frame within a header block',
    sends: [frame(type.headers, 0, 1, firstPart), frame(type.ping, 0, 0, 'ABCDEFGH')],
    goAway: code.protocol,
  },
  {
    what: 'a block in many frames, some of them empty',
    sends: [
      frame(type.headers, flags.endStream, 1, ''),
      frame(type.continuation, 0, 1, firstPart),
      frame(type.continuation, 0, 1, ''),
      frame(type.continuation, flags.endHeaders, 1, secondPart),
    ],
    answers: [1],
  },
  {
    what: 'a header block that does not decode',
    sends: [frame(type.headers, flags.whole, 1, Buffer.from([0xff, 0xff, 0xff]))],
    goAway: code.compression,
  },
  {
    what: 'a header block of a stream that is closed, which does not decode',
    sends: [open, frame(type.reset, 0, 1, words(8)), frame(type.headers, flags.whole, 1, '\x80')],
    goAway: code.compression,
  },
  {
    what: 'a table larger than we allow',
    sends: [
      frame(type.headers, flags.whole, 1, Buffer.concat([Buffer.from([0x3f, 0xe2, 0x1f]), split])),
    ],
    goAway: code.compression,
  },
];

const streamFaults: Case[] = [
  {
    what: 'DATA behind the end of the stream',
    sends: [headers(1, hang), data(1, 'x')],
    reset: [1, code.streamClosed],
  },
  {
    what: 'HEADERS behind the end of the stream',
    sends: [headers(1, hang), headers(1, [['x-a', 'b']])],
    reset: [1, code.streamClosed],
  },
  {
    what: 'DATA of a stream that the client has reset',
    sends: [open, frame(type.reset, 0, 1, words(8)), data(1, 'x')],
    reset: [1, code.streamClosed],
  },
  {
    what: 'HEADERS of a stream that the client has reset',
    sends: [open, frame(type.reset, 0, 1, words(8)), headers(1, getFields)],
    goAway: code.streamClosed,
  },
  {
    what: 'what was sent before our reset was heard of is no fault',
    sends: [
      open,
      frame(type.window, 0, 1, words(0)),
      data(1, 'late'),
      headers(1, [['x-late', 'a']]),
      frame(type.window, 0, 1, words(1)),
      headers(3, getFields),
    ],
    reset: [1, code.protocol],
    answers: [3],
  },
  {
    what: 'trailers that do not end the stream',
    sends: [open, headers(1, [['x-a', 'b']], flags.endHeaders)],
    reset: [1, code.protocol],
  },
  {
    what: 'trailers with a pseudo-header',
    sends: [open, headers(1, [[':path', '/']])],
    reset: [1, code.protocol],
  },
  {
    what: 'trailers in upper case',
    sends: [open, headers(1, [['X-A', 'b']])],
    reset: [1, code.protocol],
  },
  {
    what: 'trailers behind a body',
    sends: [
      headers(1, postFields, flags.endHeaders),
      data(1, 'body', 0),
      headers(1, [['x-a', 'b']]),
    ],
    answers: [1],
  },
];

const announcing = (length: string): Fields => [...postFields, ['content-length', length]];

const requestFaults: readonly (readonly [what: string, fields: Fields])[] = [
  ['an upper-case name', [...getFields, ['X-TEST', 'ok']]],
  ['an empty name', [...getFields, ['', 'ok']]],
  ['a name with a space', [...getFields, ['x test', 'ok']]],
  ['a value with a line feed', [...getFields, ['x-test', 'a\nb: c']]],
  ['a value with a zero', [...getFields, ['x-test', 'a\0']]],
  ['an unknown pseudo-header', [...getFields, [':test', 'ok']]],
  ['a pseudo-header of answers', [...getFields, [':status', '200']]],
  ['a pseudo-header behind a regular one', [['x-test', 'ok'], ...getFields]],
  ['connection', [...getFields, ['connection', 'keep-alive']]],
  ['keep-alive', [...getFields, ['keep-alive', '1']]],
  ['proxy-connection', [...getFields, ['proxy-connection', 'a']]],
  ['transfer-encoding', [...getFields, ['transfer-encoding', 'chunked']]],
  ['upgrade', [...getFields, ['upgrade', 'h2c']]],
  ['te other than trailers', [...getFields, ['te', 'trailers, deflate']]],
  ['an empty :path', [...getFields.filter(([name]) => name !== ':path'), [':path', '']]],
  ['a :path that is no path', [...getFields.filter(([name]) => name !== ':path'), [':path', 'a']]],
  ['a :path with a space', [...getFields.filter(([name]) => name !== ':path'), [':path', '/a b']]],
  ['an asterisk for GET', [...getFields.filter(([name]) => name !== ':path'), [':path', '*']]],
  ['no :method', getFields.slice(1)],
  ['no :scheme', getFields.filter(([name]) => name !== ':scheme')],
  ['no :path', getFields.filter(([name]) => name !== ':path')],
  ['two of :method', [[':method', 'GET'], ...getFields]],
  ['two of :scheme', [[':scheme', 'https'], ...getFields]],
  ['two of :path', [[':path', '/'], ...getFields]],
  ['two of :authority', [[':authority', 'a'], ...getFields]],
  ['a :method that is no token', [[':method', 'G T'], ...getFields.slice(1)]],
  ['an empty :method', [[':method', ''], ...getFields.slice(1)]],
  ['CONNECT with a path', [[':method', 'CONNECT'], ...getFields.slice(1)]],
  ['a length that is no number', announcing('1x')],
  ['a negative length', announcing('-1')],
  ['two lengths', [...announcing('0'), ['content-length', '1']]],
  ['a length without a body', announcing('1')],
];

async function answersStill(): Promise<void> {
  const client = await raw.connect();
  client.greet();
  client.send(whole);
  expect((await client.of(type.headers, 1)).payload[0]).toBe(0x88);
  client.destroy();
}

describe('the connection preface', () => {
  test.each(connectionFaults)('$what', async (http2Case) => {
    await check(await raw.connect(), http2Case);
    await answersStill();
  });
});

describe('frames', () => {
  test.each(frameFaults)('$what', async (http2Case) => {
    const client = await raw.connect();
    client.greet();
    await check(client, http2Case);
    await answersStill();
  });

  test('a frame of the maximum size', async () => {
    const client = await raw.connect();
    client.greet();
    client.send(headers(1, postFields, flags.endHeaders));
    client.send(frame(type.data, flags.endStream, 1, maximal));
    const last = await client.frame(
      (received) => received.type === type.data && received.flags === 1,
    );
    expect(last.stream).toBe(1);
  });

  test('a session byte by byte', async () => {
    const client = await raw.connect();
    const session = Buffer.concat([
      prefaceBytes,
      settings([3, 100], [4, 1000]),
      headers(1, postFields, flags.endHeaders),
      data(1, 'slow', 0),
      data(1, 'ly'),
      frame(type.ping, 0, 0, 'ABCDEFGH'),
    ]);
    for (const byte of session) {
      client.send(Buffer.from([byte]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    const body = await client.of(type.data, 1);
    expect(body.payload.toString()).toBe('<slowly>');
  });
});

describe('streams', () => {
  test.each(streamFaults)('$what', async (http2Case) => {
    const client = await raw.connect();
    client.greet();
    await check(client, http2Case);
    await expect.poll(() => raw.server.inFlight).toBe(0);
  });
});

describe('requests', () => {
  test.each(requestFaults)('%s', async (what, fields) => {
    const client = await raw.connect();
    client.greet();
    await check(client, { what, sends: [headers(1, fields)], reset: [1, code.protocol] });
    await check(client, { what, sends: [headers(3, getFields)], answers: [3] });
  });

  test.each([
    ['a body shorter than announced', '5', ['ab', 'cd']],
    ['a body longer than announced', '3', ['ab', 'cd']],
  ])('%s', async (what, length, pieces) => {
    const client = await raw.connect();
    client.greet();
    const body = pieces.map((piece, index) =>
      data(1, piece, index + 1 === pieces.length ? flags.endStream : 0),
    );
    const sends = [headers(1, announcing(length), flags.endHeaders), ...body];
    await check(client, { what, sends, reset: [1, code.protocol] });
  });

  test('a body of the announced length', async () => {
    const client = await raw.connect();
    client.greet();
    const sends = [headers(1, announcing('4'), flags.endHeaders), data(1, 'ab', 0), data(1, 'cd')];
    await check(client, { what: '', sends, answers: [1] });
  });

  test('CONNECT is 501', async () => {
    const client = await raw.connect();
    client.greet();
    client.send(
      headers(1, [
        [':method', 'CONNECT'],
        [':authority', 'a:1'],
      ]),
    );
    const head = await client.of(type.headers, 1);
    expect(head.payload.subarray(0, 5)).toEqual(Buffer.from('\x08\x03501'));
    expect(head.flags).toBe(flags.whole);
  });

  test('headers over the limit are 431, and the HPACK table stays correct', async () => {
    const client = await raw.connect();
    client.greet();
    const indexed = Buffer.concat([Buffer.from([0x40]), block([['x-kept', 'v']]).subarray(1)]);
    // A single entry of 3 KB that is referenced often: small on the wire, large when decoded.
    const bomb = Buffer.concat([
      Buffer.from([0x40]),
      block([['x-bomb', 'b'.repeat(3000)]]).subarray(1),
      Buffer.alloc(100, 0xbe),
      indexed,
    ]);
    client.send(frame(type.headers, flags.whole, 1, Buffer.concat([split, bomb])));
    const head = await client.of(type.headers, 1);
    expect(head.payload.subarray(0, 5)).toEqual(Buffer.from('\x08\x03431'));
    const next = Buffer.concat([split, Buffer.from([0xbe])]);
    await check(client, {
      what: '',
      sends: [frame(type.headers, flags.whole, 3, next)],
      answers: [3],
    });
  });
});
