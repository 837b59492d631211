import { type ApiObject, atPace } from '@wheelhouse/machinery';
import { copyDecoded } from '@wheelhouse/schema';
import { sendEntry } from '../answer/respond.ts';
import { checkPathAgreement } from '../registry/object-meta.ts';
import { write } from '../registry/write.ts';
import type { WriteOptions } from '../request/options.ts';
import { decodeBody, objectSteps } from './body/decode-object.ts';
import type { ApiCall } from './call.ts';
import { authorizeCreate, writeContext } from './write-context.ts';

/** PUT: replaces the object, or creates it where its kind allows (API-5). */
export async function updateEndpoint(call: ApiCall, options: WriteOptions): Promise<void> {
  const body = await decodeBody(call);
  const context = writeContext(call, options, body.bytes.length);
  await context.pace?.pause();
  const { fieldValidation } = options;
  const decoded = atPace(objectSteps(call, { body, fieldValidation }), context.pace);
  const object = decoded instanceof Promise ? await decoded : decoded;
  if (context.pace?.over) await context.pace.pause();
  const { target } = call;
  checkPathAgreement(target, object);
  const mayCreate = target.def.strategy.allowCreateOnUpdate && target.subresource === '';
  const { entry, effect } = await write(call.context.registry, {
    operation: 'update',
    target,
    context,
    transform: () => copyDecoded(object) as ApiObject,
    base: 'shared',
    source: 'body',
    onAbsent: mayCreate ? 'create' : 'refuse',
    beforeCreate: () => authorizeCreate(call),
  });
  await sendEntry(call, { status: effect === 'created' ? 201 : 200, entry });
}
