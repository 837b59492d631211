import { expect, test } from 'vitest';
import { EntryHint, entryAtRevision, makeEntry, settle, spliceRevision } from './entry.ts';
import { indexOf, widget } from './testing.ts';

test('the resourceVersion is inserted as the first member of the metadata', () => {
  const object = widget({ namespace: 'a', name: '"metadata":{' });
  const stored = Buffer.from(JSON.stringify(object));
  const json = JSON.parse(spliceRevision(stored, 42).toString());
  expect(json).toEqual({ ...object, metadata: { ...object.metadata, resourceVersion: '42' } });
  expect(Object.keys(json.metadata)[0]).toBe('resourceVersion');
});

test('an entry at a later revision has that resourceVersion', () => {
  const object = widget({ namespace: 'a', name: 'é' });
  const stored = Buffer.from(JSON.stringify(object));
  const index = indexOf(object);
  const entry = makeEntry({ key: 'a/é', stored, revision: 9, createRevision: 4, index });
  const last = entryAtRevision(entry, 1000);
  expect(last.revision).toBe(1000);
  expect(last.createRevision).toBe(4);
  expect(last.json).toEqual(spliceRevision(stored, 1000));
  expect(entry.json).toEqual(spliceRevision(stored, 9));
});

test('a hint creates one entry for each revision of its value', () => {
  const object = widget({ namespace: 'a', name: 'b' });
  const record = { key: 'a/b', stored: Buffer.from(JSON.stringify(object)), createRevision: 4 };
  const hint = new EntryHint(indexOf(object));
  const first = hint.entryOf({ ...record, revision: 4 });
  expect(hint.entryOf({ ...record, revision: 4 })).toBe(first);
  const restored = hint.entryOf({ ...record, revision: 9 });
  expect(restored.revision).toBe(9);
  expect(restored.json).toEqual(spliceRevision(record.stored, 9));
});

test('bytes without metadata throw', () => {
  expect(() => spliceRevision(Buffer.from('{}'), 1)).toThrow('metadata');
});

function entryAt(revision: number, filler: string) {
  const object = { ...widget({ namespace: 'a', name: 'b' }), filler };
  const stored = Buffer.from(JSON.stringify(object));
  return makeEntry({ key: 'a/b', stored, revision, createRevision: 1, index: indexOf(object) });
}

test('small entries share memory until they are settled, which keeps their bytes', () => {
  const entries = Array.from({ length: 20 }, (_, at) => entryAt(at + 1, 'x'.repeat(at)));
  const texts = entries.map(({ json }) => json.toString());
  expect(new Set(entries.map(({ json }) => json.buffer)).size).toBeLessThan(entries.length);
  for (const entry of entries) settle(entry);
  expect(entries.map(({ json }) => json.toString())).toEqual(texts);
  for (const { json } of entries) expect(json.buffer.byteLength).toBe(json.length);
});

test('a large entry has its own memory from the start', () => {
  const { json } = entryAt(1, 'x'.repeat(5000));
  expect(json.buffer.byteLength).toBe(json.length);
});
