import type { Revision } from '../storage/contract.ts';
import type { Entry, EntryIndex } from './contract.ts';

const metadataStart = Buffer.from('"metadata":{');
const versionStart = Buffer.from('"resourceVersion":"');
const quote = 0x22;

/**
 * Offset just behind `"metadata":{` of canonical JSON, where the version belongs. What stands before
 * it is `apiVersion` and `kind`, whose strings cannot contain an unescaped quote, so the first
 * match is the right one.
 */
function versionOffset(json: Buffer): number {
  const found = json.indexOf(metadataStart);
  if (found < 0) throw new Error('a stored object has no metadata');
  return found + metadataStart.length;
}

/** JSON up to `before`, the version member, and JSON from `after` on. */
function withVersion(json: Buffer, cut: { before: number; after: number }, revision: Revision) {
  const member = `"resourceVersion":"${revision}",`;
  // Memory of its own: a piece of node's pool would keep alive what it shares the pool with.
  const result = Buffer.allocUnsafeSlow(cut.before + member.length + json.length - cut.after);
  json.copy(result, 0, 0, cut.before);
  result.write(member, cut.before, 'latin1');
  json.copy(result, cut.before + member.length, cut.after);
  return result;
}

/**
 * What a GET answers, made from what is stored: `"resourceVersion":"N",` goes in right behind
 * `"metadata":{`. `stored` is canonical JSON (`{"apiVersion":…,"kind":…,"metadata":{…`) whose
 * metadata is not empty and has no version of its own; throws when it has no metadata.
 */
export function spliceRevision(stored: Buffer, revision: Revision): Buffer {
  const offset = versionOffset(stored);
  return withVersion(stored, { before: offset, after: offset }, revision);
}

/** Puts another version in the place of the one `spliceRevision` put in. */
export function replaceRevision(json: Buffer, revision: Revision): Buffer {
  const before = versionOffset(json);
  const after = json.indexOf(quote, before + versionStart.length) + 2;
  return withVersion(json, { before, after }, revision);
}

/** An entry as the cache holds it, made from the stored bytes. `key` has no storage prefix. */
export function makeEntry(options: {
  readonly key: string;
  readonly stored: Buffer;
  readonly revision: Revision;
  readonly createRevision: Revision;
  readonly index: EntryIndex;
}): Entry {
  const { key, stored, revision, createRevision, index } = options;
  const json = spliceRevision(stored, revision);
  return { key, revision, createRevision, json, index, memo: undefined };
}

/**
 * The last state of an object at the revision that removed it (WATCH-1) or moved it out of a
 * selector (WATCH-6): same object, the later version.
 */
export function entryAtRevision(entry: Entry, revision: Revision): Entry {
  return { ...entry, revision, json: replaceRevision(entry.json, revision), memo: undefined };
}
