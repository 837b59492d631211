import http2 from 'node:http2';
import { decodeMessage, encodeCbor, itemEnd, openEnvelope, WireReader } from '@wheelhouse/codec';
import { schemaOf } from '@wheelhouse/kinds';
import type { JsonObject } from '@wheelhouse/machinery';
import { decodeTyped } from '@wheelhouse/schema';
import { afterEach, expect, test } from 'vitest';
import { establish, versionOf } from '../custom-kinds/custom-kinds.ts';
import { adminToken, configMap, eventually, freshNamespace } from '../support/harness.ts';
import { expectSame } from '../support/same.ts';
import { withServer } from '../support/with-server.ts';

/** Watches of objects whose frames take longer to create than one slice. */

const server = await withServer({ cborServed: true });

const json = 'application/json';
const cbor = 'application/cbor';
const protobuf = 'application/vnd.svc.protobuf';
const asTable = ';as=Table;v=v1;g=meta.svc.io';
const asMetadata = ';as=PartialObjectMetadata;v=v1;g=meta.svc.io';

interface SeenEvent {
  readonly type: string;
  readonly object: JsonObject & { readonly rows?: readonly JsonObject[] };
}

/** A watch whose frames are read as they arrive. */
interface LargeWatch {
  frames(): readonly Buffer[];
  /** The events of the frames, except for CBOR, whose decoder rejects objects of this width. */
  events(): readonly SeenEvent[];
  close(): void;
}

const open = new Set<LargeWatch>();
afterEach(() => {
  for (const watch of open) watch.close();
  open.clear();
});

/** The length of the frame at the beginning of some bytes; undefined if it is incomplete. */
function frameLength(bytes: Buffer, accept: string): number | undefined {
  if (accept.startsWith(protobuf)) {
    const length = bytes.length < 4 ? Number.POSITIVE_INFINITY : 4 + bytes.readUInt32BE();
    return length <= bytes.length ? length : undefined;
  }
  if (accept.startsWith(json)) {
    const end = bytes.indexOf('\n');
    return end < 0 ? undefined : end + 1;
  }
  try {
    const end = itemEnd(bytes, 0);
    return end > 0 && end <= bytes.length ? end : undefined;
  } catch {
    return undefined;
  }
}

function openProtobuf(frame: Buffer): SeenEvent {
  const event = new WireReader(frame.subarray(4));
  event.key();
  const type = event.bytes().toString();
  event.key();
  const extension = new WireReader(event.bytes());
  extension.key();
  const { apiVersion, kind, raw } = openEnvelope(extension.bytes());
  const schema = schemaOf(
    kind === 'ConfigMap' ? 'core.v1.ConfigMap' : `meta.v1.PartialObjectMetadata`,
  );
  const decoded = { ...decodeMessage(schema, raw), apiVersion, kind };
  return { type, object: decodeTyped(schema)(decoded) as JsonObject };
}

function eventOf(frame: Buffer, accept: string): SeenEvent {
  if (accept.startsWith(protobuf)) return openProtobuf(frame);
  return JSON.parse(frame.toString()) as SeenEvent;
}

/** Checks that frames are the CBOR encoding of these events. */
function expectCbor(frames: readonly Buffer[], events: readonly SeenEvent[]) {
  const expected = events.map(({ type, object }) => encodeCbor({ type, object }));
  expect(frames.map((frame, index) => frame.equals(expected[index] ?? frame))).toEqual(
    expected.map(() => true),
  );
}

async function watch(path: string, accept: string): Promise<LargeWatch> {
  const session = http2.connect(server.url, { rejectUnauthorized: false });
  const headers = { ':path': path, authorization: `Bearer ${adminToken}`, accept };
  const stream = session.request(headers);
  const chunks: Buffer[] = [];
  const status = new Promise<number>((resolve, reject) => {
    stream.on('response', (answer) => resolve(Number(answer[':status'])));
    stream.on('error', reject);
    session.on('error', reject);
  });
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  const seen: Buffer[] = [];
  const opened: LargeWatch = {
    frames() {
      let bytes = Buffer.concat(chunks.splice(0));
      for (;;) {
        const length = frameLength(bytes, accept);
        if (length === undefined) break;
        seen.push(bytes.subarray(0, length));
        bytes = bytes.subarray(length);
      }
      chunks.push(bytes);
      return seen;
    },
    events: () => opened.frames().map((frame) => eventOf(frame, accept)),
    close: () => session.destroy(),
  };
  open.add(opened);
  expect(await status).toBe(200);
  return opened;
}

const until = (watches: readonly LargeWatch[], count: number) =>
  eventually(
    async () => watches.every((opened) => opened.frames().length >= count),
    () => `${count} events: ${watches.map((opened) => opened.frames().length)}`,
  );

const wide = (value: string): JsonObject =>
  Object.fromEntries(Array.from({ length: 6000 }, (_, index) => [`key-${index}`, value]));
const large = (name: string) => configMap(name, { data: wide('some text') });

async function change(path: string) {
  await server.post(path, large('a'));
  await server.post(path, configMap('b'));
  await server.patch(`${path}/a`, { data: { more: '1' } }, 'merge');
  await server.patch(`${path}/b`, { data: { more: '2' } }, 'merge');
  await server.remove(`${path}/a`);
  await server.post(path, configMap('c'));
}

const changes = ['ADDED a', 'ADDED b', 'MODIFIED a', 'MODIFIED b', 'DELETED a', 'ADDED c'];

function shortOf({ type, object }: SeenEvent): string {
  const { metadata, rows } = object as {
    metadata: { name?: string };
    rows?: { object: { metadata: { name: string } } }[];
  };
  return `${type} ${rows?.[0]?.object.metadata.name ?? metadata.name}`;
}

test('WATCH-1, WATCH-9: large objects arrive whole and in order in every encoding', async () => {
  const path = `/api/v1/namespaces/${await freshNamespace(server)}/configmaps`;
  const tables = [json + asTable, cbor + asTable];
  const accepts = [json, cbor, protobuf, ...tables, cbor + asMetadata, protobuf + asMetadata];
  // With a selector, the watch shares no buffer.
  const selectors = ['', '&labelSelector=!none'];
  const watches = new Map<string, LargeWatch>();
  for (const selector of selectors) {
    for (const accept of accepts) {
      watches.set(accept + selector, await watch(`${path}?watch=1${selector}`, accept));
    }
  }
  await change(path);
  await until([...watches.values()], changes.length);
  const reference = watches.get(json)?.events() ?? [];
  expect(reference.map(shortOf)).toEqual(changes);
  const partial = reference.map(({ type, object: { metadata = {} } }) => ({
    type,
    object: { kind: 'PartialObjectMetadata', apiVersion: 'meta.svc.io/v1', metadata },
  }));
  for (const selector of selectors) {
    const watchOf = (accept: string) => watches.get(accept + selector) as LargeWatch;
    expectSame(watchOf(json).events(), reference);
    expectSame(watchOf(protobuf).events(), reference);
    expectSame(watchOf(protobuf + asMetadata).events(), partial);
    expectCbor(watchOf(cbor).frames(), reference);
    expectCbor(watchOf(cbor + asMetadata).frames(), partial);
    const rows = watchOf(json + asTable).events();
    expect(rows.map(shortOf)).toEqual(changes);
    expect(rows[0]?.object).toMatchObject({ rows: [{ cells: ['a', 6000, expect.anything()] }] });
    expect(watchOf(cbor + asTable).frames()).toHaveLength(changes.length);
  }
});

test('WATCH-5: initial events of large objects precede their bookmark', async () => {
  const path = `/api/v1/namespaces/${await freshNamespace(server)}/configmaps`;
  for (const name of ['a', 'c']) await server.post(path, large(name));
  for (const name of ['b', 'd']) await server.post(path, configMap(name));
  const query =
    'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
  const inJson = await watch(`${path}?${query}`, json);
  const inCbor = await watch(`${path}?${query}`, cbor);
  const inProtobuf = await watch(`${path}?${query}`, protobuf);
  const watches = [inJson, inCbor, inProtobuf];
  await until(watches, 5);
  await server.post(path, large('e'));
  await until(watches, 6);
  for (const opened of [inJson, inProtobuf]) {
    const events = opened.events();
    const initial = ['ADDED a', 'ADDED b', 'ADDED c', 'ADDED d'];
    expect(events.slice(0, 4).map(shortOf)).toEqual(initial);
    expect(events[4]?.type).toBe('BOOKMARK');
    expect(events.slice(5).map(shortOf)).toEqual(['ADDED e']);
  }
  const added = (events: readonly SeenEvent[]) => events.filter(({ type }) => type === 'ADDED');
  const reference = added(inJson.events());
  expectSame(added(inProtobuf.events()), reference);
  const frames = inCbor.frames();
  expectCbor([...frames.slice(0, 4), ...frames.slice(5)], reference);
});

test('TRUST-2: a watcher that leaves does not affect others', async () => {
  const path = `/api/v1/namespaces/${await freshNamespace(server)}/configmaps`;
  const leaving: LargeWatch[] = [];
  for (const accept of [cbor, protobuf]) leaving.push(await watch(`${path}?watch=1`, accept));
  const inCbor = await watch(`${path}?watch=1`, cbor);
  const inJson = await watch(`${path}?watch=1`, json);
  const changed = change(path);
  await until([inJson], 1);
  for (const leaver of leaving) leaver.close();
  await changed;
  await until([inCbor, inJson], changes.length);
  const reference = inJson.events();
  expect(reference.map(shortOf)).toEqual(changes);
  expectCbor(inCbor.frames(), reference);
});

test('CRD-4: large custom objects are converted for watchers of another version', async () => {
  const group = 'large.example.com';
  const schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const versions = [versionOf('v1', schema, { storage: true }), versionOf('v2', schema)];
  await establish(server, { group, plural: 'wides', kind: 'Wide', versions });
  const at = (version: string) => `/apis/${group}/${version}/namespaces/default/wides`;
  const query = 'watch=1&includeObject=Object';
  const inJson = await watch(`${at('v2')}?${query}`, json);
  const inCbor = await watch(`${at('v2')}?${query}`, cbor);
  const inTable = await watch(`${at('v2')}?${query}`, json + asTable);
  const object = (name: string, spec: JsonObject) => ({
    apiVersion: `${group}/v1`,
    kind: 'Wide',
    metadata: { name },
    spec,
  });
  await server.post(at('v1'), object('a', wide('x')));
  await server.post(at('v1'), object('b', { small: true }));
  await until([inJson, inCbor, inTable], 2);
  const reference = inJson.events();
  expect(reference.map(shortOf)).toEqual(['ADDED a', 'ADDED b']);
  expect(reference[0]?.object).toMatchObject({ apiVersion: `${group}/v2`, spec: wide('x') });
  expectCbor(inCbor.frames(), reference);
  const rows = inTable.events().map(({ object: { rows: [row] = [] } }) => row);
  expect(rows).toEqual(
    reference.map(({ object: shown }) => expect.objectContaining({ object: shown })),
  );
});
