import { invalid, invalidObject, StatusError } from '@wheelhouse/machinery';
import { listShown } from '../answer/list-answer.ts';
import { sendValue, successStatus } from '../answer/respond.ts';
import { requireTarget } from '../registry/permit.ts';
import { write } from '../registry/write.ts';
import { ignoreStoreReadError } from '../request/delete-options-body.ts';
import type { DeleteOptions, ListOptions } from '../request/options.ts';
import type { Entry } from '../watchcache/contract.ts';
import type { ApiCall } from './call.ts';
import { checkedSelection } from './collection-options.ts';
import { deleteOptionsShown, writeContext } from './write-context.ts';

/** Deletions of one request that run at a time, unless told otherwise. */
const parallelMax = 16;

/** DELETE of a collection: every object that the list would show; one that vanishes is no error (DEL-3). */
export async function deleteCollectionEndpoint(
  call: ApiCall,
  options: { list: ListOptions; removal: DeleteOptions },
): Promise<void> {
  const { context, target } = call;
  const { list, removal } = options;
  if (removal.ignoreStoreReadError === true && context.unreadableDeletion === 'allowed') {
    const why = 'is not allowed with DELETECOLLECTION, try again after removing the option';
    const kind = { group: context.dialect.group('meta'), kind: 'DeleteOptions' };
    throw invalidObject(kind, '', [invalid(ignoreStoreReadError, true, why)]);
  }
  requireTarget(call.permit, 'deletecollection', target);
  const { filter, name } = checkedSelection(call, list);
  const found = await listShown(call, {
    namespace: target.namespace,
    ...(name === undefined ? {} : { name }),
    resourceVersion: list.resourceVersion,
    resourceVersionMatch: list.resourceVersionMatch,
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
      // The request fails: nothing may go on behind its answer.
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
  await sendValue(call, { status: 200, value: successStatus(details, 200) });
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
