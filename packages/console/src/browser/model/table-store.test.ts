import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { TableRow } from './table.ts';
import { TableRows } from './table-store.ts';

function row(key: string, version: number): TableRow {
  const resourceVersion = String(version);
  return {
    key,
    namespace: '',
    name: key,
    uid: key,
    resourceVersion,
    cells: [],
    metadata: {},
    object: {},
  };
}

const key = fc.constantFrom(...'abcdefghij');
const step = fc.oneof(
  fc.record({ do: fc.constant('page' as const) }),
  fc.record({ do: fc.constant('put' as const), key }),
  fc.record({ do: fc.constant('delete' as const), key }),
);

test('CLIENT-4: pages of one resourceVersion and later changes yield the current rows', () => {
  const atFirst = fc.uniqueArray(key, { maxLength: 10 });
  const pageSize = fc.integer({ min: 1, max: 4 });
  const steps = fc.array(step, { maxLength: 40 });
  fc.assert(
    fc.property(atFirst, pageSize, steps, (first, size, script) => {
      const listed = first.sort().map((name) => row(name, 0));
      const truth = new Map(listed.map((entry) => [entry.key, entry]));
      const rows = new TableRows();
      let read = 0;
      let isDone = false;
      const readPage = (): void => {
        if (isDone) return;
        const page = listed.slice(read, read + size);
        read += page.length;
        isDone = read === listed.length;
        rows.addPage(page, isDone ? 'last' : 'more to come');
      };
      const check = (): void => {
        const end = isDone ? '~' : (listed[read - 1]?.key ?? '');
        const wanted = [...truth.values()].filter((entry) => entry.key <= end);
        const inOrder = wanted.sort((left, right) => (left.key < right.key ? -1 : 1));
        expect(rows.sorted).toEqual(inOrder);
        expect(rows.size).toBe(wanted.length);
      };
      readPage();
      script.forEach((action, index) => {
        const version = index + 1;
        if (action.do === 'page') readPage();
        else if (action.do === 'put') {
          rows.change(truth.has(action.key) ? 'MODIFIED' : 'ADDED', row(action.key, version));
          truth.set(action.key, row(action.key, version));
        } else if (truth.delete(action.key)) rows.change('DELETED', row(action.key, version));
        check();
      });
      while (!isDone) readPage();
      check();
    }),
  );
});
