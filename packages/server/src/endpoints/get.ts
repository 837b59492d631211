import { parseAhead } from '@wheelhouse/codec';
import { atPace, notFound } from '@wheelhouse/machinery';
import { bodyPace } from '../answer/request-slices.ts';
import { sendEntry } from '../answer/respond.ts';
import { objectKey } from '../registry/object-codec.ts';
import { requireTarget } from '../registry/permit.ts';
import { groupResourceOf } from '../registry/registry.ts';
import type { GetOptions } from '../request/options.ts';
import type { ApiCall } from './call.ts';

/** Answers one object, the cached bytes as they are (LIST-4). */
export async function getEndpoint(call: ApiCall, options: GetOptions): Promise<void> {
  const { context, target } = call;
  requireTarget(call.permit, 'get', target);
  const key = objectKey(target.namespace, target.name);
  const found = context.registry.caches.of(target.def).get(key, options.resourceVersion);
  const entry = found instanceof Promise ? await found : found;
  if (entry === undefined) throw notFound(groupResourceOf(target.def), target.name);
  if (call.output.encoding.form !== 'json') {
    const ahead = atPace(parseAhead(entry.json), bodyPace(call, entry.json.length));
    if (ahead instanceof Promise) await ahead;
  }
  await sendEntry(call, { status: 200, entry, age: 'now' });
}
