import {
  forbidden,
  invalid,
  invalidObject,
  type StatusDetails,
  StatusError,
} from '@wheelhouse/machinery';
import { listShown } from '../answer/lists.ts';
import { sendEntry, sendValue, successStatus } from '../answer/respond.ts';
import { checkTableOptions } from '../answer/shapes.ts';
import type { DeletePlan, Written } from '../registry/contract.ts';
import { groupResourceOf } from '../registry/registry.ts';
import { write } from '../registry/write.ts';
import { type DeleteOptions, ignoreStoreReadError, type ListOptions } from '../request/options.ts';
import { attributesOf } from '../request/parse-request.ts';
import type { Entry } from '../watchcache/entry.ts';
import type { ApiCall } from './call.ts';
import { checkedSelection } from './collection-options.ts';
import { deleteOptionsShown, writeContext } from './write.ts';

/** DELETE of one object (DEL-1, DEL-2). */
export async function deleteEndpoint(call: ApiCall, options: DeleteOptions): Promise<void> {
  const { target, context } = call;
  const reason = target.def.strategy.undeletable?.(target.name);
  if (reason !== undefined) throw forbidden(groupResourceOf(target.def), target.name, reason);
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

/** Removes an object that cannot be read, which requires its own verb (DEL-6). */
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
  await sendSuccess(call, details);
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
  const attributes = attributesOf(info, user, exchange, verb);
  const { decision, reason } = await context.reviews.decide(attributes);
  if (decision === 'allow') return;
  throw refuse(`not permitted to do ${JSON.stringify(verb)}, reason: ${reason}`);
}

/**
 * Answers with the object while something keeps it, and otherwise with the kind's answer to a
 * deletion.
 */
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
  await sendSuccess(call, details);
}

/**
 * Answers with a Status, which has no other form. Like kube-apiserver, throws 400 if a table is
 * requested with an invalid `includeObject`, although the objects are deleted.
 */
async function sendSuccess(call: ApiCall, details: StatusDetails): Promise<void> {
  checkTableOptions(call);
  await sendValue(call, { status: 200, value: successStatus({ details }) });
}

/** Default number of concurrent deletions of one request. */
const parallelMax = 16;

/**
 * DELETE of a collection: every object that the list would contain; an object that is already gone
 * is no error (DEL-3). The selection is validated before `removal` reads the body.
 */
export async function deleteCollectionEndpoint(
  call: ApiCall,
  options: { list: ListOptions; removal: () => Promise<DeleteOptions> },
): Promise<void> {
  const { context, target } = call;
  const { list } = options;
  const { filter, name } = checkedSelection(call, list);
  const removal = await options.removal();
  if (removal.ignoreStoreReadError === true && context.unreadableDeletion === 'allowed') {
    const why = 'is not allowed with DELETECOLLECTION, try again after removing the option';
    const kind = { group: context.dialect.group('meta'), kind: 'DeleteOptions' };
    throw invalidObject(kind, '', [invalid(ignoreStoreReadError, true, why)]);
  }
  const found = await listShown(call, {
    namespace: target.namespace,
    ...(name === undefined ? {} : { name }),
    resourceVersion: list.resourceVersion,
    resourceVersionMatch: list.resourceVersionMatch ?? matchOfDeletion(list),
    limit: list.limit,
    continueToken: list.continueToken,
    filter,
  });
  const entries = [...found.entries()];
  let next = 0;
  const worker = async () => {
    try {
      for (let entry = entries[next++]; entry !== undefined; entry = entries[next++]) {
        await deleteOne(call, entry, removal);
      }
    } catch (error) {
      // The request fails, so the other workers must not continue after its answer.
      next = entries.length;
      throw error;
    }
  };
  const { collectionWorkersMax = parallelMax } = context.limits;
  const workers = Math.min(collectionWorkersMax, entries.length);
  await Promise.all(Array.from({ length: workers }, worker));
  const details = {
    ...(target.def.group === '' ? {} : { group: target.def.group }),
    kind: target.def.resource,
  };
  await sendSuccess(call, details);
}

/**
 * A revision without a match is exact, as in a paged list, because kube-apiserver deletes in pages.
 * Objects created later stay.
 */
function matchOfDeletion({ resourceVersion, continueToken }: ListOptions): 'Exact' | undefined {
  const isLatest = resourceVersion === undefined || /^0?$/.test(resourceVersion);
  return isLatest || (continueToken ?? '') !== '' ? undefined : 'Exact';
}

async function deleteOne(call: ApiCall, entry: Entry, removal: DeleteOptions): Promise<void> {
  const { name, namespace } = entry.index;
  try {
    await write(call.context.registry, {
      operation: 'delete',
      target: { ...call.target, name, namespace },
      context: writeContext(call, {
        dryRun: removal.dryRun,
        fieldManager: undefined,
        shown: () => deleteOptionsShown(removal),
      }),
      options: removal,
      of: 'collection',
    });
  } catch (error) {
    if (!(error instanceof StatusError) || error.reason !== 'NotFound') throw error;
  }
}
