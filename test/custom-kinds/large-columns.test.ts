import { describe, expect, test } from 'vitest';
import { cpuMsOf } from '../support/cpu-time.ts';
import { withServer } from '../support/with-server.ts';
import { establish, versionOf } from './custom-kinds.ts';

/** Printer columns whose paths or objects are so large that each step counts. */

const server = await withServer();
const table = 'application/json;as=Table;v=v1;g=meta.svc.io';
const schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
const group = 'columns.example.com';

async function establishWith(plural: string, paths: readonly string[]): Promise<string> {
  const additionalPrinterColumns = paths.map((jsonPath, index) => ({
    name: `C${index}`,
    type: 'string',
    jsonPath,
  }));
  const kind = plural.replace(/^./, (letter) => letter.toUpperCase());
  const version = versionOf('v1', schema, { storage: true, additionalPrinterColumns });
  await establish(server, { group, plural, kind, versions: [version] });
  const path = `/apis/${group}/v1/namespaces/default/${plural}`;
  const members = Object.fromEntries(Array.from({ length: 15_000 }, (_, at) => [`k${at}`, 'x']));
  const object = {
    apiVersion: `${group}/v1`,
    kind,
    metadata: { name: 'a' },
    list: [members, members, members],
  };
  const answer = await server.post(path, object);
  expect(answer.status, answer.body.message).toBe(201);
  return path;
}

async function cellsOf(path: string): Promise<readonly unknown[]> {
  const { body } = await server.request('GET', `${path}/a`, { headers: { accept: table } });
  const [row] = body['rows'] as readonly { readonly cells: readonly unknown[] }[];
  return row?.cells ?? [];
}

describe('TRUST-2: printer columns', () => {
  test('TRUST-2: the columns of a row share a bound of visited values', async () => {
    const wide = Array.from({ length: 2000 }, () => '..none');
    let cells: readonly unknown[] = [];
    const path = await establishWith('wides', ['.metadata.name', ...wide]);
    // Each column alone takes several milliseconds.
    expect(
      await cpuMsOf(async () => {
        cells = await cellsOf(path);
      }),
    ).toBeLessThan(3000);
    expect(cells.slice(0, 4)).toEqual(['a', 'a', null, null]);
    expect(cells).toHaveLength(2002);
  });

  test('TRUST-2: the columns of a row share a bound of printed text', async () => {
    const cells = await cellsOf(await establishWith('texts', ['.list', '.list', '.list']));
    expect(cells.map((cell) => typeof cell === 'string')).toEqual([true, true, false, false]);
  });

  test('TRUST-2: paths of unions are read in linear time up to a length', async () => {
    const unions = `.[${'0,'.repeat(4000)}0]${'.a'.repeat(4000)}`;
    const long = `.[${'0,'.repeat(20_000)}0]${'.a'.repeat(20_000)}`;
    let cells: readonly unknown[] = [];
    expect(
      await cpuMsOf(async () => {
        cells = await cellsOf(await establishWith('unions', ['.metadata.name', unions, long]));
      }),
    ).toBeLessThan(5000);
    expect(cells).toEqual(['a', 'a', null]);
  });

  test('TRUST-2: malformed numbers in paths are read in linear time', async () => {
    const paths = Array.from({ length: 20 }, () => `.list[?(@.a==${'1'.repeat(16_000)}..)]`);
    let cells: readonly unknown[] = [];
    expect(
      await cpuMsOf(async () => {
        cells = await cellsOf(await establishWith('numbers', paths));
      }),
    ).toBeLessThan(5000);
    expect(cells).toEqual(['a']);
  });
});
