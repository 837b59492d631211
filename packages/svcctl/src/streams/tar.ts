import { CliError } from '../io.ts';

// This module reads and writes tar archives: ustar, with pax records where necessary.

const blockBytes = 512;
/** Maximum size of a pax record or GNU long name. */
const recordBytesMax = 1024 * 1024;

/** The metadata of a file in an archive. */
export interface TarEntry {
  readonly name: string;
  readonly type: 'file' | 'directory' | 'symlink' | 'other';
  /** Permission bits. */
  readonly mode: number;
  /** Size of the content in bytes. */
  readonly size: number;
  /** Modification time in seconds since 1970. */
  readonly mtime: number;
  /** Target of a symbolic link; empty for other entries. */
  readonly link: string;
}

const typeFlags = { file: '0', directory: '5', symlink: '2', other: '0' } as const;
const typesOfFlags: Readonly<Record<string, TarEntry['type']>> = {
  '0': 'file',
  '\0': 'file',
  '7': 'file',
  '5': 'directory',
  '2': 'symlink',
};

/** Encodes the header of an entry, preceded by pax records for values that ustar cannot hold. */
export function tarHeader(entry: TarEntry): Buffer {
  const name = entry.type === 'directory' ? `${entry.name}/` : entry.name;
  const records = [
    ...(fits(name) ? [] : [paxRecord('path', name)]),
    ...(fits(entry.link) ? [] : [paxRecord('linkpath', entry.link)]),
    ...(entry.size < 8 ** 11 ? [] : [paxRecord('size', String(entry.size))]),
  ];
  const header = ustarBlock({ ...entry, name }, typeFlags[entry.type]);
  if (records.length === 0) return header;
  const record = Buffer.concat(records);
  const paxEntry = { ...entry, name: 'PaxHeaders/entry', link: '', size: record.length };
  return Buffer.concat([ustarBlock(paxEntry, 'x'), record, tarPadding(record.length), header]);
}

/** The padding after content of `size` bytes. */
export const tarPadding = (size: number): Buffer =>
  Buffer.alloc((blockBytes - (size % blockBytes)) % blockBytes);

/** The blocks that end an archive. */
export const tarEnd: Buffer = Buffer.alloc(2 * blockBytes);

const fits = (text: string) => /^[\x20-\x7e]*$/.test(text) && Buffer.byteLength(text) <= 100;

/** Encodes a pax record, which begins with its own length. */
function paxRecord(key: string, value: string): Buffer {
  const rest = ` ${key}=${value}\n`;
  let length = Buffer.byteLength(rest);
  while (String(length).length + Buffer.byteLength(rest) !== length) {
    length = String(length).length + Buffer.byteLength(rest);
  }
  return Buffer.from(`${length}${rest}`);
}

function ustarBlock(entry: TarEntry, typeFlag: string): Buffer {
  const block = Buffer.alloc(blockBytes);
  const octal = (value: number, at: number, bytes: number) =>
    block.write(`${(value % 8 ** (bytes - 1)).toString(8).padStart(bytes - 1, '0')}\0`, at);
  Buffer.from(entry.name).copy(block, 0, 0, 100);
  octal(entry.mode, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(entry.size, 124, 12);
  octal(Math.max(0, Math.floor(entry.mtime)), 136, 12);
  block.write(typeFlag, 156);
  Buffer.from(entry.link).copy(block, 157, 0, 100);
  block.write('ustar\u000000', 257);
  block.fill(' ', 148, 156);
  block.write(`${checksum(block).toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}

const checksum = (block: Buffer) => block.reduce((sum, byte) => sum + byte, 0);

/** An entry of an archive. Reading the next entry skips unread content. */
interface ReadEntry {
  readonly entry: TarEntry;
  readonly content: AsyncIterable<Buffer>;
}

/** Yields the entries of an archive. Rejects with CliError if it is malformed or truncated. */
export async function* readTar(chunks: AsyncIterable<Buffer>): AsyncGenerator<ReadEntry> {
  const source = new ByteSource(chunks);
  try {
    yield* readEntries(source);
  } finally {
    await source.close();
  }
}

async function* readEntries(source: ByteSource): AsyncGenerator<ReadEntry> {
  let records: Readonly<Record<string, string>> = {};
  for (;;) {
    const block = await source.take(blockBytes, 'optional');
    // Read what follows the end, so that the writer can finish.
    if (block === undefined || block.every((byte) => byte === 0)) return source.drain();
    const typeFlag = String.fromCharCode(block[156] ?? 0);
    const header = readHeader(block, records);
    if ('xLKg'.includes(typeFlag)) {
      records = { ...records, ...(await readRecords(source, typeFlag, header.size)) };
      continue;
    }
    records = {};
    const content = source.content(header.size);
    yield { entry: header, content };
    for await (const _ of content);
    await source.take(tarPadding(header.size).length);
  }
}

const corrupted = (why: string) => new CliError(`tar contents corrupted: ${why}`);

function readHeader(block: Buffer, records: Readonly<Record<string, string>>): TarEntry {
  const text = (at: number, bytes: number) =>
    block.toString('utf8', at, at + bytes).split('\0', 1)[0] ?? '';
  const blank = Buffer.from(block).fill(' ', 148, 156);
  if (readNumber(block, 148, 8) !== checksum(blank))
    throw corrupted('a header has a wrong checksum');
  const prefix = text(257, 5) === 'ustar' && block[262] === 0 ? text(345, 155) : '';
  const name = records['path'] ?? (prefix === '' ? text(0, 100) : `${prefix}/${text(0, 100)}`);
  const size = records['size'] === undefined ? readNumber(block, 124, 12) : Number(records['size']);
  if (!Number.isSafeInteger(size) || size < 0) throw corrupted('a header has a wrong size');
  return {
    name,
    type: typesOfFlags[String.fromCharCode(block[156] ?? 0)] ?? 'other',
    mode: readNumber(block, 100, 8) % 0o10000,
    size,
    mtime: readNumber(block, 136, 12),
    link: records['linkpath'] ?? text(157, 100),
  };
}

/**
 * Reads a number in octal digits, or in GNU's binary format. Throws CliError if it is malformed.
 */
function readNumber(block: Buffer, at: number, bytes: number): number {
  if ((block[at] ?? 0) >= 0x80) return Number(block.readBigUInt64BE(at + bytes - 8));
  const digits = block.toString('latin1', at, at + bytes).replace(/[\0 ]+/g, '');
  if (!/^[0-7]*$/.test(digits)) throw corrupted('a header has a malformed number');
  return digits === '' ? 0 : Number.parseInt(digits, 8);
}

async function readRecords(
  source: ByteSource,
  typeFlag: string,
  size: number,
): Promise<Readonly<Record<string, string>>> {
  if (size > recordBytesMax) throw corrupted('a record is too long');
  const content = await source.take(size);
  await source.take(tarPadding(size).length);
  if (typeFlag === 'L') return { path: untilZero(content) };
  if (typeFlag === 'K') return { linkpath: untilZero(content) };
  const records: Record<string, string> = {};
  if (typeFlag === 'g') return records;
  for (let at = 0; at < content.length; ) {
    const length = Number.parseInt(content.toString('latin1', at, at + 12), 10);
    if (!(length > 4)) throw corrupted('a record has no length');
    const text = content.toString('utf8', at, at + length - 1);
    const [, key = '', value = ''] = /^\d+ ([^=]+)=([\s\S]*)$/.exec(text) ?? [];
    if (['path', 'linkpath', 'size'].includes(key)) records[key] = value;
    at += length;
  }
  return records;
}

const untilZero = (content: Buffer) => content.toString().split('\0', 1)[0] ?? '';

/** Reads a stream of chunks by number of bytes. */
class ByteSource {
  readonly #chunks: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(chunks: AsyncIterable<Buffer>) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  /** Discards the remaining bytes. */
  async drain(): Promise<void> {
    while ((await this.#chunks.next()).done !== true);
  }

  async close(): Promise<void> {
    await this.#chunks.return?.();
  }

  /**
   * Reads exactly `bytes` bytes. At an early end, rejects; at the end, resolves with undefined if
   * the bytes are `optional`.
   */
  async take(bytes: number): Promise<Buffer>;
  async take(bytes: number, mode: 'optional'): Promise<Buffer | undefined>;
  async take(bytes: number, mode?: 'optional'): Promise<Buffer | undefined> {
    const parts: Buffer[] = [];
    for await (const part of this.content(bytes, mode)) parts.push(part);
    return parts.length === 0 && bytes > 0 ? undefined : Buffer.concat(parts);
  }

  /**
   * Yields exactly `bytes` bytes in parts. Rejects at an early end, unless the bytes are `optional`
   * and none has been read.
   */
  async *content(bytes: number, mode?: 'optional'): AsyncGenerator<Buffer> {
    for (let missing = bytes; missing > 0; ) {
      if (this.#rest.length === 0) {
        const { done, value } = await this.#chunks.next();
        if (done === true) {
          if (mode === 'optional' && missing === bytes) return;
          throw corrupted('unexpected end');
        }
        this.#rest = value;
        continue;
      }
      const part = this.#rest.subarray(0, missing);
      this.#rest = this.#rest.subarray(part.length);
      missing -= part.length;
      yield part;
    }
  }
}
