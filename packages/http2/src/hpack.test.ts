import { describe, expect, test } from 'vitest';
import { fault, HpackDecoder } from './hpack-decoder.ts';
import { addField, addFields, addNoTable, addStatus } from './message-heads.ts';
import { ByteQueue } from './output.ts';
import { ConnectionError, errorCode } from './protocol.ts';

type Field = readonly [name: string, value: string, faults?: number];

function decode(decoder: HpackDecoder, block: Buffer): Field[] {
  const fields: Field[] = [];
  decoder.decode(
    block,
    { start: 0, end: block.length },
    {
      field: (name, value, faults) => {
        fields.push(faults === 0 ? [name, value] : [name, value, faults]);
      },
    },
  );
  return fields;
}

function hex(text: string): Buffer {
  return Buffer.from(text.replaceAll(' ', ''), 'hex');
}

const path: Field = [':path', '/'];
const request: Field[] = [[':method', 'GET'], [':scheme', 'http'], path];
const authority: Field = [':authority', 'www.example.com'];
const second: Field[] = [...request, authority, ['cache-control', 'no-cache']];
const third: Field[] = [
  [':method', 'GET'],
  [':scheme', 'https'],
  [':path', '/index.html'],
  authority,
  ['custom-key', 'custom-value'],
];
const responseFields: Field[] = [
  ['cache-control', 'private'],
  ['date', 'Mon, 21 Oct 2013 20:13:21 GMT'],
  ['location', 'https://www.example.com'],
];
const lastResponse: Field[] = [
  [':status', '200'],
  ['cache-control', 'private'],
  ['date', 'Mon, 21 Oct 2013 20:13:22 GMT'],
  ['location', 'https://www.example.com'],
  ['content-encoding', 'gzip'],
  ['set-cookie', 'foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1'],
];

describe('examples of RFC 7541, appendix C', () => {
  test.each<[string, string, Field]>([
    [
      'C.2.1',
      '400a637573746f6d2d6b65790d637573746f6d2d686561646572',
      ['custom-key', 'custom-header'],
    ],
    ['C.2.2', '040c2f73616d706c652f70617468', [':path', '/sample/path']],
    ['C.2.3', '100870617373776f726406736563726574', ['password', 'secret']],
    ['C.2.4', '82', [':method', 'GET']],
  ])('%s', (_section, block, field) => {
    expect(decode(new HpackDecoder(4096), hex(block))).toEqual([field]);
  });

  test.each([
    [
      'C.3, requests without Huffman coding',
      [
        '8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
        '8286 84be 5808 6e6f 2d63 6163 6865',
        '8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65',
      ],
    ],
    [
      'C.4, requests with Huffman coding',
      [
        '8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff',
        '8286 84be 5886 a8eb 1064 9cbf',
        '8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf',
      ],
    ],
  ])('%s', (_section, blocks) => {
    const decoder = new HpackDecoder(4096);
    const fields = blocks.map((block) => decode(decoder, hex(block)));
    expect(fields).toEqual([[...request, authority], second, third]);
  });

  test.each([
    [
      'C.5, responses without Huffman coding, in a small table',
      [
        '4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
        '4803 3330 37c1 c0bf',
        '88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31',
      ],
    ],
    [
      'C.6, responses with Huffman coding, in a small table',
      [
        '4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3',
        '4883 640e ffc1 c0bf',
        '88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07',
      ],
    ],
  ])('%s', (_section, blocks) => {
    const decoder = new HpackDecoder(256);
    const fields = blocks.map((block) => decode(decoder, hex(block)));
    const first: Field[] = [[':status', '302'], ...responseFields];
    expect(fields).toEqual([first, [[':status', '307'], ...responseFields], lastResponse]);
  });
});

describe('malformed header blocks', () => {
  test.each([
    ['index 0', '80'],
    ['an index beyond both tables', 'be'],
    ['a name index beyond both tables', '7f ff 20 01 61'],
    ['a truncated integer', 'ff ff ff'],
    ['an integer of more than four bytes', 'ff ff ff ff ff ff 01'],
    ['a field without a value', '40 01 61'],
    ['a text beyond the end', '40 05 61'],
    ['a size update after a field', '82 20'],
    ['a table size above the limit', '3f e2 1f'],
    ['the end mark of the Huffman code', '00 84 ff ff ff ff 01 61'],
    ['padding of eight ones', '00 82 1f ff 01 61'],
    ['padding of zeros', '00 81 18 01 61'],
  ])('%s', (_what, block) => {
    const read = () => decode(new HpackDecoder(4096), hex(block));
    expect(read).toThrow(ConnectionError);
    expect(read).toThrow(expect.objectContaining({ code: errorCode.compressionError }));
  });
});

describe('the dynamic table', () => {
  test('size updates empty it, and two may precede the first field', () => {
    const decoder = new HpackDecoder(4096);
    decode(decoder, hex('4001 6101 62'));
    expect(decode(decoder, hex('be'))).toEqual([['a', 'b']]);
    expect(decode(decoder, hex('20 3fe11f 82'))).toEqual([[':method', 'GET']]);
    expect(() => decode(decoder, hex('be'))).toThrow(ConnectionError);
  });

  test('an entry larger than the table empties it and is still decode', () => {
    const decoder = new HpackDecoder(64);
    decode(decoder, hex('4001 6101 62'));
    const long = Buffer.concat([hex('4001 6140'), Buffer.alloc(64, 0x63)]);
    expect(decode(decoder, long)).toEqual([['a', 'c'.repeat(64)]]);
    expect(() => decode(decoder, hex('be'))).toThrow(ConnectionError);
  });

  test('a name may refer to the entry that its insertion evicts', () => {
    const decoder = new HpackDecoder(40);
    decode(decoder, hex('4003 616161 01 62'));
    expect(decode(decoder, hex('7e 02 6363 be'))).toEqual([
      ['aaa', 'cc'],
      ['aaa', 'cc'],
    ]);
  });

  test('behaves like a plain list over many random blocks', () => {
    const seed = Date.now() % 1_000_000;
    const random = randomOf(seed);
    const limit = 300;
    const decoder = new HpackDecoder(limit);
    let list: [string, string][] = [];
    for (let round = 0; round < 5000; round += 1) {
      const queue = new ByteQueue();
      queue.reserve(500);
      const entry = list.length > 0 ? Math.floor(random() * list.length) : -1;
      let expected: [string, string];
      if (entry >= 0 && random() < 0.5) {
        queue.bytes[queue.length++] = 0x80 | (62 + entry);
        expected = list[entry] as [string, string];
      } else {
        expected = [`n${Math.floor(random() * 40)}`, 'v'.repeat(Math.floor(random() * 60))];
        for (const text of ['@', ...expected]) {
          if (text !== '@') queue.bytes[queue.length++] = text.length;
          queue.length += queue.bytes.write(text, queue.length, 'latin1');
        }
        list.unshift(expected);
        let bytes = 0;
        list = list.filter(([name, value]) => {
          bytes += name.length + value.length + 32;
          return bytes <= limit;
        });
      }
      const block = queue.bytes.subarray(0, queue.length);
      expect(decode(decoder, block), `seed ${seed}, round ${round}`).toEqual([expected]);
    }
  });
});

describe('invalid names and values', () => {
  test.each<[string, string, string, number]>([
    ['an upper-case name', 'Aa', 'b', fault.name],
    ['an empty name', '', 'b', fault.name],
    ['a name with a space', 'a b', 'b', fault.name],
    ['a name with a colon in it', 'a:b', 'b', fault.name],
    ['a colon alone', ':', 'b', fault.name],
    ['a name beyond ASCII', 'a\xe4', 'b', fault.name],
    ['a value with a line feed', 'a', 'b\nc', fault.value],
    ['a value with a zero', 'a', 'b\0', fault.value],
    ['both', 'A', '\r', fault.name | fault.value],
    ['neither: a tab inside the value, bytes beyond ASCII', 'a', 'b\tc\xe4 ', 0],
  ])('%s', (_what, name, value, faults) => {
    const block = Buffer.from(
      `@${String.fromCharCode(name.length)}${name}${String.fromCharCode(value.length)}${value}`,
      'latin1',
    );
    const field: Field = faults === 0 ? [name, value] : [name, value, faults];
    const decoder = new HpackDecoder(4096);
    expect(decode(decoder, block)).toEqual([field]);
    // The table stores the faults of an entry.
    expect(decode(decoder, hex('be'))).toEqual([field]);
  });
});

describe('encodeAndDecode blocks', () => {
  function encodeAndDecode(add: (queue: ByteQueue) => void): Field[] {
    const queue = new ByteQueue();
    add(queue);
    return decode(new HpackDecoder(4096), queue.bytes.subarray(0, queue.length));
  }

  test('can be decode', () => {
    const long = 'x'.repeat(300);
    const values = { 'audit-id': 'a', 'content-type': 'b/c', 'x-long': long, vary: '' };
    for (let round = 0; round < 3; round += 1) {
      const fields = encodeAndDecode((queue) => {
        addNoTable(queue);
        addStatus(queue, 200);
        addFields(queue, { ...values, 'audit-id': `a${round}`, warning: ['one', 'two \xe4'] });
      });
      expect(fields).toEqual([
        [':status', '200'],
        ['audit-id', `a${round}`],
        ['content-type', 'b/c'],
        ['x-long', long],
        ['vary', ''],
        ['warning', 'one'],
        ['warning', 'two \xe4'],
      ]);
    }
  });

  test.each([200, 204, 206, 304, 400, 404, 500, 201, 429, 503, 100])('status %s', (status) => {
    expect(encodeAndDecode((queue) => addStatus(queue, status))).toEqual([
      [':status', String(status)],
    ]);
  });

  test.each([126, 127, 128, 254, 255, 16_510])('a value of %s bytes', (length) => {
    const value = 'v'.repeat(length);
    expect(encodeAndDecode((queue) => addField(queue, 'x-a', value))).toEqual([['x-a', value]]);
  });

  test.each<[string, string]>([
    ['X-Upper', 'a'],
    ['connection', 'close'],
    ['transfer-encoding', 'chunked'],
    ['a b', 'c'],
    ['x-lines', 'a\r\nb: c'],
    ['x-zero', '\0'],
    ['x-wide', 'ab\u0142'],
  ])('%s: %j is rejected', (name, value) => {
    const queue = new ByteQueue();
    expect(() => addField(queue, name, value)).toThrow(TypeError);
  });
});

function randomOf(seed: number): () => number {
  let state = seed + 1;
  return () => {
    state = (state * 16_807) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}
