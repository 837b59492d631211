import { type ListOptions, parseListOptions } from '../request/options.ts';
import { invalidListOptions, validateListOptions } from '../watchcache/list-options.ts';
import type { ApiCall, EndpointContext } from './call.ts';
import { parseSelectors, type Selection, selectionOf } from './selection.ts';

/**
 * Judges the options of a list, watch or deletecollection in upstream's order: selectors that cannot
 * be read (400), combinations that may not be (422; LIST-5, WATCH-5), then fields that the kind does
 * not offer (400). Gives the selection.
 */
export function checkedSelection(call: ApiCall, options: ListOptions): Selection {
  const selectors = parseSelectors(options);
  checkCombinations(call.context, options);
  return selectionOf(call, selectors);
}

/** Throws what is wrong with a query's options, whatever kind they are asked of. */
export function checkListQuery(
  context: Pick<EndpointContext, 'dialect' | 'features'>,
  query: URLSearchParams,
): void {
  const options = parseListOptions(query, context.dialect);
  parseSelectors(options);
  checkCombinations(context, options);
}

function checkCombinations(
  { dialect, features }: Pick<EndpointContext, 'dialect' | 'features'>,
  options: ListOptions,
): void {
  const errors = validateListOptions({
    watch: options.watch,
    resourceVersion: options.resourceVersion ?? '',
    resourceVersionMatch: options.resourceVersionMatch ?? '',
    continueToken: options.continueToken ?? '',
    sendInitialEvents: options.sendInitialEvents,
    listsByWatch: features.enabled('WatchList') ? 'served' : 'refused',
  });
  if (errors.length > 0) throw invalidListOptions(dialect.group('meta'), errors);
}
