import { forbidden } from '@wheelhouse/machinery';
import { sendEntry, sendValue, successStatus } from '../answer/respond.ts';
import type { DeletePlan, Written } from '../registry/contract.ts';
import { groupResourceOf } from '../registry/registry.ts';
import { write } from '../registry/write.ts';
import { attributesOf } from '../request/attributes.ts';
import { ignoreStoreReadError } from '../request/delete-options-body.ts';
import type { DeleteOptions } from '../request/options.ts';
import type { ApiCall } from './call.ts';
import { deleteOptionsShown, writeContext } from './write-context.ts';

/** DELETE of one object (DEL-1, DEL-2). */
export async function deleteEndpoint(call: ApiCall, options: DeleteOptions): Promise<void> {
  const { target, context } = call;
  const writing = writeContext(call, {
    dryRun: options.dryRun,
    fieldManager: undefined,
    shown: () => deleteOptionsShown(options),
  });
  const plan = { operation: 'delete', target, context: writing, options } as const;
  if (options.ignoreStoreReadError === true && context.unreadableDeletion === 'allowed') {
    return removeUnreadable(call, plan);
  }
  const deleted = await write(context.registry, plan);
  await answerDeletion(call, deleted, options);
}

/** Removal of an object that cannot be read, which takes a verb of its own (DEL-6). */
async function removeUnreadable(
  call: ApiCall,
  plan: DeletePlan & { readonly options: DeleteOptions },
): Promise<void> {
  const { target, context } = call;
  const apiServer = context.dialect.group('apiserver');
  call.audit?.annotate(`${apiServer}/unsafe-delete-ignore-read-error`, '');
  await authorizeUnreadable(call);
  const { deleteUnreadable } = await import('../registry/delete-unreadable.ts');
  const deleted = await deleteUnreadable(context.registry, plan, ignoreStoreReadError);
  if (deleted !== undefined) return answerDeletion(call, deleted, plan.options);
  const { def, name } = target;
  const details = { name, ...(def.group === '' ? {} : { group: def.group }), kind: def.resource };
  await sendValue(call, { status: 200, value: successStatus(details, 200) });
}

async function authorizeUnreadable(call: ApiCall): Promise<void> {
  const { context, target, user, info, exchange } = call;
  const refuse = (why: string) => forbidden(groupResourceOf(target.def), target.name, why);
  if (target.subresource !== '') {
    throw refuse(
      `${ignoreStoreReadError} delete option is not allowed on a subresource or non-resource request`,
    );
  }
  const verb = 'unsafe-delete-ignore-read-errors';
  const asked = attributesOf(info, user, exchange, verb);
  const { decision, reason } = await context.reviews.decide(asked);
  if (decision === 'allow') return;
  throw refuse(`not permitted to do ${JSON.stringify(verb)}, reason: ${reason}`);
}

/** The object while something still holds it, else what its kind answers with. */
async function answerDeletion(
  call: ApiCall,
  deleted: Written,
  options: DeleteOptions,
): Promise<void> {
  const { def } = call.target;
  const { entry, effect } = deleted;
  if (effect !== 'removed') {
    const status = options.orphanDependents === false ? 202 : 200;
    return sendEntry(call, { status, entry });
  }
  if (def.strategy.deleteAnswers === 'object') return sendEntry(call, { status: 200, entry });
  const details = {
    name: entry.index.name,
    ...(def.group === '' ? {} : { group: def.group }),
    kind: def.resource,
    uid: entry.index.uid,
  };
  await sendValue(call, { status: 200, value: successStatus(details, 200) });
}
