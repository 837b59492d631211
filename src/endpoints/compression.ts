import type { ListResult } from '../watchcache/contract.ts';
import type { ApiCall } from './call.ts';
export function wantsGzip(_call: ApiCall, _result: ListResult): boolean { return false; }
export async function compressed(_call: ApiCall, _o: { headers: unknown; pieces: Iterable<Buffer> }): Promise<void> {}
