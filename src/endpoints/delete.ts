import type { Deleted } from '../registry/contract.ts';
import { deleteObject } from '../registry/delete.ts';
import type { DeleteOptions } from '../request/options.ts';
import type { ApiCall } from './call.ts';
import { sendEntry, sendValue, successStatus } from './respond.ts';
import { deleteOptionsShown, writeContext } from './write-context.ts';

/** DELETE of one object (DEL-1, DEL-2). */
export async function deleteEndpoint(call: ApiCall, options: DeleteOptions): Promise<void> {
  const { target, context } = call;
  const deleted = await deleteObject(context.registry, {
    target,
    context: writeContext(call, {
      dryRun: options.dryRun,
      fieldManager: undefined,
      shown: () => deleteOptionsShown(options),
    }),
    options,
  });
  await answerDeletion(call, deleted, options);
}

/** The object while something still holds it, else what its kind answers with. */
async function answerDeletion(
  call: ApiCall,
  deleted: Deleted,
  options: DeleteOptions,
): Promise<void> {
  const { def } = call.target;
  const { entry, removed } = deleted;
  if (!removed) {
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
