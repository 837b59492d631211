import { describe, expect, test } from 'vitest';
import { readTar, type TarEntry, tarEnd, tarHeader, tarPadding } from './tar.ts';

const entry = (more: Partial<TarEntry>): TarEntry => ({
  ...{ name: 'file', type: 'file', mode: 0o644, size: 0, mtime: 1_700_000_000, link: '' },
  ...more,
});

function archiveOf(files: readonly { readonly entry: TarEntry; readonly text: string }[]): Buffer {
  const parts = files.flatMap(({ entry: tarEntry, text }) => [
    tarHeader(tarEntry),
    Buffer.from(text),
    tarPadding(tarEntry.size),
  ]);
  return Buffer.concat([...parts, tarEnd, Buffer.alloc(8192)]);
}

/** Reads an archive in chunks of the given size. */
async function read(archive: Buffer, pieceBytes: number) {
  async function* pieces() {
    for (let at = 0; at < archive.length; at += pieceBytes) {
      yield archive.subarray(at, at + pieceBytes);
    }
  }
  const entries: { entry: TarEntry; text: string }[] = [];
  for await (const { entry: tarEntry, content } of readTar(pieces())) {
    const chunks: Buffer[] = [];
    if (tarEntry.name !== 'skipped') for await (const chunk of content) chunks.push(chunk);
    entries.push({ entry: tarEntry, text: Buffer.concat(chunks).toString() });
  }
  return entries;
}

describe('tar archives', () => {
  const files = [
    { entry: entry({ name: 'a', size: 3, mode: 0o600 }), text: 'one' },
    { entry: entry({ name: 'skipped', size: 700 }), text: 's'.repeat(700) },
    { entry: entry({ name: `${'long/'.repeat(60)}größe`, size: 512 }), text: 'x'.repeat(512) },
    { entry: entry({ name: 'link', type: 'symlink', link: '../'.repeat(50) }), text: '' },
    { entry: entry({ name: 'n'.repeat(100), size: 0 }), text: '' },
  ];

  test.each([1, 7, 512, 1_000_000])('round-trip in chunks of %i bytes', async (size) => {
    const expected = files.map((file) =>
      file.entry.name === 'skipped' ? { ...file, text: '' } : file,
    );
    expect(await read(archiveOf(files), size)).toEqual(expected);
  });

  test('may be empty', async () => {
    expect(await read(tarEnd, 100)).toEqual([]);
    expect(await read(Buffer.alloc(0), 100)).toEqual([]);
  });

  test('are rejected if malformed or truncated', async () => {
    const whole = archiveOf(files);
    const damaged = Buffer.from(whole);
    damaged[0] = 0x7a;
    await expect(read(damaged, 512)).rejects.toThrow('wrong checksum');
    for (const bytes of [100, 514, 1300]) {
      await expect(read(whole.subarray(0, bytes), 512)).rejects.toThrow('unexpected end');
    }
    await expect(read(Buffer.alloc(512, 1), 512)).rejects.toThrow('malformed number');
    const badMode = tarHeader(entry({}));
    badMode.write('rwxr-xr', 100);
    const sum = badMode.fill(' ', 148, 156).reduce((total, byte) => total + byte, 0);
    badMode.write(sum.toString(8).padStart(6, '0'), 148);
    await expect(read(badMode, 512)).rejects.toThrow('malformed number');
  });
});
