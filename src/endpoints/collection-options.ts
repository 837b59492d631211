import type { ListOptions } from '../request/options.ts';
import { invalidListOptions, validateListOptions } from '../watchcache/list-options.ts';
import type { ApiCall } from './call.ts';
import { type Selection, selectionOf } from './selection.ts';

/**
 * Judges the options of a list, watch or deletecollection in upstream's order: combinations that
 * may not be (422; LIST-5, WATCH-5), then selectors (400). Gives the selection.
 */
export function checkedSelection(
  call: ApiCall,
  options: ListOptions,
  { watch }: { readonly watch: boolean },
): Selection {
  const errors = validateListOptions({
    watch,
    resourceVersion: options.resourceVersion ?? '',
    resourceVersionMatch: options.resourceVersionMatch ?? '',
    continueToken: options.continueToken ?? '',
    sendInitialEvents: options.sendInitialEvents,
  });
  if (errors.length > 0) throw invalidListOptions(call.context.dialect.group('meta'), errors);
  return selectionOf(call, options);
}
