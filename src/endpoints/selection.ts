import type { ListOptions } from '../request/options.ts';
import type { EntryFilter } from '../watchcache/contract.ts';
import type { ApiCall } from './call.ts';
export function filterOf(_call: ApiCall, _options: ListOptions): EntryFilter | undefined { return undefined; }
export function singleName(_call: ApiCall, _options: ListOptions): string | undefined { return undefined; }
