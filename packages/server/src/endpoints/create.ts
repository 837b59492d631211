import { atPace } from '@wheelhouse/machinery';
import { sendEntry } from '../answer/respond.ts';
import { write } from '../registry/write.ts';
import type { WriteOptions } from '../request/options.ts';
import { decodeBody, objectSteps } from './body/decode-object.ts';
import type { ApiCall } from './call.ts';
import { writeContext } from './write-context.ts';

/** POST on a collection: 201 with the stored object (API-3, DRY-1, FV-2). */
export async function createEndpoint(call: ApiCall, options: WriteOptions): Promise<void> {
  const body = await decodeBody(call);
  const { registry } = call.context;
  const context = writeContext(call, options, body.bytes.length);
  await context.pace?.pause();
  const { fieldValidation } = options;
  const decoded = atPace(objectSteps(call, { body, fieldValidation }), context.pace);
  const object = decoded instanceof Promise ? await decoded : decoded;
  if (context.pace?.over) await context.pace.pause();
  const { tap } = call.context;
  tap?.named(call.exchange, object.metadata.name ?? '');
  const { target } = call;
  const { entry } = await write(registry, { operation: 'create', target, object, context });
  tap?.named(call.exchange, entry.index.name);
  await sendEntry(call, { status: 201, entry });
}
